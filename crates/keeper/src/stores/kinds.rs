//! The kinds of stores that are known.

mod chat;
mod crush;
mod goose;
mod hermes;
pub(super) mod openclaw;
mod opencode;
mod zed;

use super::kind::StoreKind;

pub(super) const KINDS: &[&StoreKind] =
    &[&openclaw::KIND, &opencode::KIND, &hermes::KIND, &goose::KIND, &crush::KIND, &zed::KIND];
