//! The kinds of stores that are known.

use super::kind::StoreKind;
use super::{crush, goose, hermes, openclaw, opencode, zed};

pub(super) const KINDS: &[&StoreKind] =
    &[&openclaw::KIND, &opencode::KIND, &hermes::KIND, &goose::KIND, &crush::KIND, &zed::KIND];
