//! What each trainer accepts as a row of its data, as data. Each trainer is one file; [`TRAINERS`] lists them all.
//!
//! A trainer knows no format: [`judge`] reads a row as JSON, whatever else may be in it.

mod axolotl;
mod base;
mod fireworks;
mod judge;
mod llamafactory;
mod openai_finetune;
mod swift;
mod together;
mod trl;
mod verl;

pub use base::{Content, RowTerm, Trainer};
pub use judge::{RowObjection, RowsVerdict, judge, judge_row};

/// All trainers. Their names are unique; a provider of the same name may have a contract as well.
pub const TRAINERS: &[&Trainer] = &[
    &openai_finetune::TRAINER,
    &together::TRAINER,
    &fireworks::TRAINER,
    &llamafactory::TRAINER,
    &axolotl::TRAINER,
    &trl::TRAINER,
    &verl::TRAINER,
    &swift::TRAINER,
];

/// The trainer of this name.
pub fn find(name: &str) -> Option<&'static Trainer> {
    TRAINERS.iter().copied().find(|trainer| trainer.name.eq_ignore_ascii_case(name))
}

#[cfg(test)]
mod tests {
    use super::super::base::is_like;
    use super::{TRAINERS, find};
    use alloc::vec::Vec;

    #[test]
    fn the_table_is_whole_and_its_names_are_unique() {
        let mut names: Vec<&str> = TRAINERS.iter().map(|trainer| trainer.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), TRAINERS.len());
        for trainer in TRAINERS {
            assert!(!trainer.title.is_empty() && find(trainer.name).is_some(), "{}", trainer.name);
            let about: Vec<&str> = trainer.all_clauses().iter().map(|clause| clause.term.about()).collect();
            for (at, clause) in trainer.clauses.iter().enumerate() {
                assert!(!clause.source.is_empty(), "{}: {:?} has no source", trainer.name, clause.term);
                let again = trainer.clauses[..at].iter().any(|own| is_like(&own.term, &clause.term));
                assert!(!again, "{}: {:?} is there twice", trainer.name, clause.term);
            }
            for needed in ["columns", "roles", "list"] {
                assert_eq!(
                    about.iter().filter(|own| **own == needed).count(),
                    1,
                    "{}: {needed}",
                    trainer.name
                );
            }
        }
    }
}
