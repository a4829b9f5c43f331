//! The way to `stores`, in builds with it and without.

#[cfg(feature = "stores")]
pub use crate::stores::measure_store;
#[cfg(feature = "stores")]
pub(crate) use crate::stores::{
    Replacing, Stored, open, open_or_gone, open_to_scan, sessions, text, whys, written,
};

#[cfg(not(feature = "stores"))]
mod without {
    use crate::ask::error::Error;
    use crate::ask::stop::Stop;
    use crate::base::refusal::Refusal;
    use crate::options::Mode;
    use crate::places::found::{Fill, FoundFile};
    use crate::swap::content::FileContent;
    use crate::vault::{RowsKept, RowsMade, RowsWritten, Run};
    use std::path::Path;
    use std::time::SystemTime;
    use transcript::situation::{KnownRecords, LoadLimit};
    use transcript::{Source, Span};

    /// The file itself, whatever is in it.
    pub(crate) fn sessions(file: &Path, root: Option<&Path>) -> Vec<Result<FoundFile, Error>> {
        vec![Ok(FoundFile::file(file, root))]
    }

    /// No store is known.
    ///
    /// # Errors
    ///
    /// None.
    pub fn measure_store(_: &Path) -> Result<Option<Fill>, Error> {
        Ok(None)
    }

    /// Without stores, when a session was written is not known.
    pub(crate) fn written(_: &Path, _: &str) -> Option<SystemTime> {
        None
    }

    /// No reason of a store to hold a repair.
    pub(crate) fn whys() -> Vec<&'static str> {
        Vec::new()
    }

    /// No path stands for a session that can be read.
    #[expect(clippy::unnecessary_wraps, reason = "a build with stores may fail")]
    pub(crate) fn open(_: &Path, _: Option<&Path>) -> Result<Option<Stored>, Stop> {
        Ok(None)
    }

    /// No path stands for the text of a session.
    #[expect(clippy::unnecessary_wraps, reason = "a build with stores may fail")]
    pub(crate) fn text(_: &Path, _: Option<&Path>) -> Result<Option<FileContent>, Stop> {
        Ok(None)
    }

    /// A session in a store, of which this build has none.
    pub(crate) struct Stored {
        pub(crate) content: FileContent,
        pub(crate) known_records: KnownRecords,
        pub(crate) load: Option<LoadLimit>,
        never: Never,
    }

    enum Never {}

    impl Stored {
        pub(crate) fn only(&self) -> Option<&'static str> {
            match self.never {}
        }

        pub(crate) fn hindrance(&self) -> Option<Refusal> {
            match self.never {}
        }

        pub(crate) fn no_rows(&self) -> &'static str {
            match self.never {}
        }

        pub(crate) fn waits_for_owner(&self, _: &Mode) -> Result<(), Stop> {
            match self.never {}
        }

        pub(crate) fn known(&self, _: &dyn Source, _: &[u64]) -> Result<KnownRecords, Stop> {
            match self.never {}
        }

        pub(crate) fn replace(
            &self,
            _: Replacing<'_>,
            _: impl FnOnce(RowsKept) -> Result<Run, Stop>,
        ) -> Result<RowsWritten, Stop> {
            match self.never {}
        }
    }

    #[expect(dead_code, reason = "nothing reads it here")]
    pub(crate) struct Replacing<'r> {
        pub(crate) old: &'r dyn Source,
        pub(crate) new: &'r dyn Source,
        pub(crate) parts: Vec<(u64, Option<Span>)>,
        pub(crate) only_if_still: bool,
        pub(crate) made: Option<RowsMade>,
    }
}

#[cfg(not(feature = "stores"))]
pub use without::measure_store;
#[cfg(not(feature = "stores"))]
pub(crate) use without::{
    Replacing, Stored, open, open as open_or_gone, open as open_to_scan, sessions, text, whys, written,
};
