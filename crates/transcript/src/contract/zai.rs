//! Z.ai, which serves GLM.

use super::base::{BASE, Clause, Contract, Term};
use super::chat;

pub(super) const CONTRACT: Contract = Contract {
    name: "zai",
    title: "Z.ai (GLM)",
    providers: &["z.ai", "zhipu", "zhipuai", "bigmodel"],
    models: &["glm"],
    clauses: &[
        Clause::reported(Term::NeedsUser, "code 1214; opencode #2557"),
        Clause::reported(Term::NoBlankText, "code 1214: \"messages:输入不能为空\""),
    ],
    over: Some(&chat::SHARED),
    ..BASE
};
