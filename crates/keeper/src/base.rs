//! What all rooms speak of: steps of a run, refusals, how to stop reading, what is asked of a session, names on a screen.

pub(crate) mod interruption;
pub(crate) mod policies;
pub(crate) mod refusal;
pub(crate) mod shown;
pub(crate) mod step;
