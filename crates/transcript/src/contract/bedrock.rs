//! Bedrock Converse.

use super::base::{BASE, Clause, Contract, Letters, Term, Variant};

pub(super) const CONTRACT: Contract = Contract {
    name: "bedrock-converse",
    title: "Bedrock Converse",
    providers: &["bedrock", "amazon-bedrock", "bedrock-converse-stream"],
    models: &["us.", "eu.", "apac.", "global."],
    clauses: &[
        Clause::known(
            Term::CallIds(Letters { others: Some("_.:-"), min: 1, max: 64, begins_with_letter: false }),
            "botocore 1.44.8",
        ),
        Clause::known(Term::ToolNames(Letters::word(64)), "botocore 1.44.8"),
        Clause::known(Term::ArgumentsAreObject, "litellm 1.110.2"),
        Clause::believed(Term::NoBlankText, "\"The text field in the ContentBlock object … is blank\""),
        Clause::known(Term::NoEmptyMessage, "pi-ai 0.74.2, pydantic-ai 2.68.0"),
        Clause::reported(Term::CallsAnswered, "\"Expected toolResult blocks at messages.N.content\""),
        Clause::reported(
            Term::ResultsHaveCalls,
            "\"The number of toolResult blocks … exceeds the number of toolUse blocks\"",
        ),
        Clause::known(
            Term::Images(&["image/png", "image/jpeg", "image/gif", "image/webp"]),
            "botocore 1.44.8",
        ),
    ],
    variants: &[
        Variant {
            models: &["mistral", "us.mistral", "eu.mistral", "apac.mistral"],
            clauses: &[
                Clause::known(Term::CallIds(Letters::exactly(9)), "@ai-sdk/amazon-bedrock"),
                Clause::known(Term::BeginsWithUser, "pydantic-ai 2.68.0, live"),
                Clause::known(Term::NoUserAfterResult, "pydantic-ai 2.68.0, live"),
            ],
        },
        Variant {
            models: &["meta", "us.meta", "eu.meta", "apac.meta", "writer", "us.writer"],
            clauses: &[
                Clause::known(Term::BeginsWithUser, "pydantic-ai 2.68.0, live"),
                Clause::known(Term::NoUserAfterResult, "pydantic-ai 2.68.0, live"),
            ],
        },
    ],
    ..BASE
};
