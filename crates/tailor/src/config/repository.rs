//! `tailor.toml` at the root of a repository: which rules, limits and files count below it. It is part of what was checked
//! out, so it can turn nothing on that acts, and says nothing about what lies outside.

use super::{FileSettings, Loaded};
use crate::settings::{Scope, Setting};
use keeper::{FolderGlobs, Options};
use std::path::{Path, PathBuf};

const NAME: &str = "tailor.toml";

/// The file, if all of these paths lie in the repository around the current folder.
pub(crate) fn find(paths: &[PathBuf]) -> Option<PathBuf> {
    let here = std::env::current_dir().ok()?.canonicalize().ok()?;
    let root = here.ancestors().find(|folder| folder.join(".git").exists())?;
    let is_below = |path: &PathBuf| path.canonicalize().is_ok_and(|path| path.starts_with(root));
    let file = root.join(NAME);
    (!paths.is_empty() && paths.iter().all(is_below) && file.is_file()).then_some(file)
}

/// The owner of a configuration file.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Owner {
    /// The user's, or the machine's.
    User,
    /// One that the user named.
    Named,
    Repository,
}

impl Owner {
    /// What is wrong with a key in such a file.
    pub(super) fn refusal(self, file: &FileSettings) -> Option<String> {
        match self {
            Self::Named => None,
            Self::User => {
                let key = file.first_key(&|setting: &Setting| setting.scope == Scope::Repository)?;
                Some(format!(
                    "`{key}` is for `scan` and `fix` of one folder: put it into {NAME} at the root of a repository"
                ))
            }
            Self::Repository => {
                let key = file.first_key(&|setting: &Setting| !setting.is_for_repositories())?;
                Some(format!(
                    "`{key}` is not for a repository to set, only rules, limits and files to leave out: use an option, \
                     or your own configuration"
                ))
            }
        }
    }
}

/// Rules to skip in some files.
#[derive(Clone, Default)]
pub(crate) struct FileIgnores(Vec<(FolderGlobs, Vec<String>)>);

impl FileIgnores {
    /// The options for a file, if they differ from those for all.
    pub(crate) fn options(&self, path: &Path, all: &Options) -> Option<Options> {
        let here = self.0.iter().filter(|(globs, _)| globs.match_path(path));
        let codes: Vec<String> = here.flat_map(|(_, codes)| codes.clone()).collect();
        let ignore = |options: &Options| Options {
            policy: options
                .policy
                .clone()
                .map(|policy| policy.selection.ignore.extend(codes.iter().cloned())),
            ..options.clone()
        };
        (!codes.is_empty()).then(|| ignore(all))
    }
}

impl Loaded {
    /// The folder that globs are relative to: the repository's root, or the current one for a file that was named.
    fn folder(&self) -> PathBuf {
        let root = self.repository.as_deref().and_then(Path::parent).map(Path::to_path_buf);
        let here = || std::env::current_dir().and_then(|here| here.canonicalize());
        root.or_else(|| here().ok()).unwrap_or_default()
    }

    /// The files and folders to leave out.
    pub(crate) fn exclude(&self) -> Result<Option<FolderGlobs>, String> {
        let globs = &self.settings.exclude;
        if globs.is_empty() { Ok(None) } else { FolderGlobs::new(&self.folder(), globs).map(Some) }
    }

    /// The rules to skip in some files.
    pub(crate) fn file_ignores(&self) -> Result<FileIgnores, String> {
        let folder = self.folder();
        let one = |(glob, codes): &(String, Vec<String>)| {
            FolderGlobs::new(&folder, std::slice::from_ref(glob)).map(|globs| (globs, codes.clone()))
        };
        self.settings.file_ignores.iter().map(one).collect::<Result<_, _>>().map(FileIgnores)
    }
}
