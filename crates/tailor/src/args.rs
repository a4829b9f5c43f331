//! The command line, and the policy that it makes together with the configuration.

mod check;
mod common;
mod complete;
mod doctor;
mod file;
mod flags;
mod groups;
mod hook;
mod keep;
mod lines;
mod top;

pub(crate) use check::{Allowed, FileLayout, Listing, ReportFormat, ResultArgs};
pub(crate) use common::{Common, Json};
pub(crate) use complete::{Complete, Completions, Man};
pub(crate) use doctor::{DoctorArgs, ResumeArgs};
pub(crate) use hook::{HookArgs, HookEvent};
pub(crate) use keep::{KeepCheck, KeepCommand, KeepList, KeepNow, KeepRestore, KeepWhat};
pub(crate) use lines::DataSet;
pub(crate) use top::{ReportArgs, TopArgs};

use crate::config::repository::FileIgnores;
use crate::config::{Loaded, load};
use crate::names;
use crate::settings::{SettingEdit, Settings};
use crate::value::{
    ThinkingChoice, Tokenizer, count, duration, glob, long_duration, millis, or_meant, rules, severity, size,
};
use clap::ValueHint::{AnyPath, FilePath};
use clap::builder::{EnumValueParser, TypedValueParser};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Args as ClapArgs, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};
use doctor::session;
pub(crate) use file::ConfigFile;
use flags::GivenValues;
use keeper::{LeftOut, Mode, Options, Policies, Recovery, RunsToKeep, Vault};
use spans::marker::TextFolder;
use std::env::consts::{ARCH, OS};
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::LazyLock;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use transcript::chunk;
use transcript::contract::trainer::{self, TRAINERS};
use transcript::contract::{CONTRACTS, Target};
use transcript::policy::WINDOW_TOKENS;
use transcript::policy::{Budget, Policy, SignedThinking};
use transcript::recover::{self, RecoverLevel};
use transcript::rule::{self, Group};
use transcript::{Finding, Severity, Situation};
use watch::Build;

/// Keeps AI agents' session transcripts healthy: checks them, trims them to fit, repairs what is broken, and
/// never loses a line.
#[derive(Parser)]
#[command(name = "tailor", version, long_version = VERSION.as_str(), max_term_width = 100)]
#[command(after_help = "Exit codes: 0 nothing to report, 1 findings remain, 2 an error, 130 interrupted.\n\
    Start with `tailor doctor`: it only reads.")]
pub(crate) struct Args {
    /// Without one, Tailor lists the newest sessions and those that are broken.
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
    /// Print the sessions as JSON, one object a line, as `tailor doctor --json` does.
    ///
    /// It stands without a command; after one, it is that command's.
    #[arg(long, hide_short_help = true)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) common: Common,
}

/// What `--version` says: also for which system the program was built, and of which commit, where the build was told.
static VERSION: LazyLock<String> = LazyLock::new(|| {
    let Build { target, commit } = build();
    let commit = if commit.is_empty() { commit } else { format!(", commit {commit}") };
    format!("{} ({target}{commit})", env!("CARGO_PKG_VERSION"))
});

pub(crate) fn build() -> Build {
    let libc = match () {
        () if cfg!(target_env = "gnu") => "-gnu",
        () if cfg!(target_env = "musl") => "-musl",
        () if cfg!(target_env = "msvc") => "-msvc",
        () => "",
    };
    let commit = option_env!("TAILOR_COMMIT").unwrap_or_default().to_string();
    Build { target: format!("{ARCH}-{OS}{libc}"), commit }
}

/// What was written on the command line; what cannot be read ends the program.
pub(crate) fn parse() -> Args {
    let read = groups::grouped(Args::command()).try_get_matches();
    let args = read.and_then(|matches| Args::from_arg_matches(&matches)).unwrap_or_else(exit_with);
    if args.json && args.command.is_some() {
        let what = "--json goes after the command, as in: tailor scan --json";
        Args::command().error(ErrorKind::ArgumentConflict, what).exit()
    }
    args
}

/// Ends the program because the command line cannot be read, with what was probably meant.
fn exit_with(mut error: clap::Error) -> Args {
    let suggested = error.get(ContextKind::SuggestedSubcommand).is_some();
    if let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidSubcommand)
        && !suggested
    {
        // clap's measure of similarity finds no match for short words with swapped letters.
        let commands = Args::command();
        let names = commands.get_subcommands().filter(|command| !command.is_hide_set());
        let meant = names
            .map(clap::Command::get_name)
            .find(|name| strsim::damerau_levenshtein(name, word) == 1)
            .map(str::to_string);
        if let Some(meant) = meant {
            error.insert(ContextKind::SuggestedSubcommand, ContextValue::Strings(vec![meant]));
        }
    }
    error.exit()
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// List sessions, and the command that repairs each.
    ///
    /// Newest first, with what is wrong with each. Changes nothing.
    #[command(
        visible_alias = "ls",
        after_help = "Examples:\n  tailor doctor\n  tailor doctor --broken --agent claude\n  \
        tailor doctor --json | jq -r 'select(.state == \"broken\").command'\n\
        States: ok; bloated: a repair would save much; broken: the agent or the API refuses it; too long: it does not fit \
        into the model's context window; nearly full: it fills 90% of that; refused: the provider refused the last request; empty, unreadable: \
        there is nothing to read; in use: an agent is at work on it; ?: not looked at yet.\n\
        Exit codes: 0 whatever else is found, 2 an error, or a session that is empty or unreadable."
    )]
    Doctor(DoctorArgs),
    /// Repair a session, and start its agent on it.
    ///
    /// The newest session of the folder where you are, else the newest of all; or the one with this id.
    #[command(
        after_help = "Examples:\n  tailor resume claude\n  tailor resume 0d0f7b2c\n  tailor resume codex 0d0f7b2c\n  tailor resume pi --no-start\n\
        Exit codes: those of the agent; without it 0 ready, 1 not now, 2 an error."
    )]
    Resume(ResumeArgs),
    /// Check transcripts and report what is wrong.
    ///
    /// Changes nothing.
    #[command(
        visible_alias = "check",
        after_help = "Examples:\n  tailor scan\n  tailor scan ~/.claude/projects --min-severity error\n  \
        tailor scan session.jsonl --json | jq .findings\n\
        For checks in CI, see --help.\n\
        Exit codes: 0 no errors found, 1 errors found, 2 an error, 130 interrupted",
        after_long_help = "Examples:\n  tailor scan\n  tailor scan ~/.claude/projects --min-severity error\n  \
        tailor scan session.jsonl --json | jq .findings\n  \
        tailor scan sessions --max-context-tokens window --fail-on L5\n  \
        tailor scan sessions --max-file-size 2M --format sarif -o tailor.sarif --exit-zero\n  \
        tailor scan sessions --json -o known.json\n  tailor scan sessions --baseline known.json\n\
        Exit codes: 0 no errors found, 1 errors found (see --fail-on), 2 a file could not be read, 130 interrupted by Ctrl-C."
    )]
    Scan(ScanArgs),
    /// Repair transcripts in place, where that is safe.
    #[command(
        visible_alias = "repair",
        after_help = "Examples:\n  tailor fix session.jsonl --dry-run --diff   # show what would change\n  \
        tailor fix session.jsonl\n  \
        tailor fix session.jsonl --select P1,P2     # only lost tool results\n  \
        tailor fix session.jsonl --allow S9         # also what was compacted\n  \
        tailor fix ~/.openclaw --copy-to /tmp/repaired\n\
        Undo: tailor undo session.jsonl\n\
        Exit codes: 0 all fixed, 1 problems remain, 2 an error, 130 interrupted"
    )]
    Fix(FixArgs),
    /// Show what fills a file and the context.
    ///
    /// Tools, fields, turns, the largest entries. Changes nothing.
    #[command(
        after_help = "Examples:\n  tailor top session.jsonl\n  tailor top ~/.claude/projects -n 20\n  \
        tailor top session.jsonl --json | jq '.largest[0]'\n\
        Exit codes: 0 whatever is found, 2 an error"
    )]
    Top(TopArgs),
    /// Write an HTML report of sizes and problems.
    ///
    /// What fills the contexts, what is wrong, what a fix would change.
    #[command(after_help = "Examples:\n  tailor report -o report.html\n  \
        tailor report ~/.claude/projects -o report.html\n\
        Exit codes: 0 whatever is found, 2 an error")]
    Report(ReportArgs),
    /// Restore what a run of `fix` changed.
    ///
    /// Also after the agent has appended more.
    #[command(
        visible_alias = "restore",
        after_help = "Examples:\n  tailor undo                               # lists the newest runs\n  \
        tailor undo session.jsonl                 # the newest run\n  \
        tailor undo session.jsonl --to-original   # all of them\n  \
        tailor undo --all                         # the newest run of every file\n  \
        tailor undo session.jsonl --run 20261121T160102.123Z-3f9a1c20\n\
        Exit codes: 0 undone, 1 not now or not all of it, 2 an error, 130 interrupted"
    )]
    Undo(UndoArgs),
    /// Print the context in chunks that fit a summariser.
    ///
    /// As lines of JSON.
    #[command(after_help = "Examples:\n  tailor chunk session.jsonl --max-tokens 50k\n  \
        tailor chunk session.jsonl --tokenizer o200k --max-total-tokens 200k | jq -r '.messages[]?.text'\n\
        Exit codes: 0 all was printed, 2 an error")]
    Chunk(ChunkArgs),
    /// Replace older messages by a summary that a command writes.
    ///
    /// It is stored as the agent's own compaction.
    #[command(
        after_help = "Examples:\n  tailor compact session.jsonl --with 'llm \"Summarise this\"' --dry-run\n  \
        tailor compact session.jsonl --with ./summarise.sh --keep 20\n\
        The command reads each chunk on its standard input, beside TAILOR_CHUNK and \
        TAILOR_CHUNKS. If it fails or prints nothing, nothing is changed.\n\
        Exit codes: 0 compacted, 1 not now or nothing to compact, 2 an error."
    )]
    Compact(CompactArgs),
    /// Shorten a session that the API refuses as too long.
    ///
    /// Until it fits: results are cut, then the oldest messages left out.
    #[command(
        after_help = "Examples:\n  tailor recover session.jsonl --dry-run\n  tailor recover session.jsonl\n  \
        tailor recover session.jsonl --target-tokens 100k\n  \
        tailor recover session.jsonl --json --error 'prompt is too long: …'\n\
        Exit codes: 0 it fits now, or it was not too long; 1 not now, not by this, or still too long; 2 an error."
    )]
    Recover(RecoverArgs),
    /// Print a session from a database as JSON lines.
    ///
    /// As it is stored. Changes nothing.
    #[command(
        after_help = "Examples:\n  tailor export '~/.local/share/opencode/opencode.db#ses_dfbac0375ffe' > session.jsonl\n  \
        tailor scan ~/.local/share/opencode/opencode.db   # lists the sessions\n\
        Of a damaged database, what can still be read is printed.\n\
        Exit codes: 0 all of it was printed, 1 some rows could not be read, 2 an error."
    )]
    Export(ExportArgs),
    /// Compare two copies of a session record by record.
    ///
    /// Such as a file and the database that it was moved to.
    #[command(
        after_help = "Examples:\n  tailor diff old.jsonl '~/.openclaw/agents/main/agent/openclaw-agent.sqlite#s1'\n  \
        tailor diff before.jsonl after.jsonl --json\n\
        Exit codes: 0 both hold the same records, 1 they differ, 2 an error."
    )]
    Diff(DiffArgs),
    /// Print the full text that a marker of `fix` stands for.
    ///
    /// The marker names the id.
    #[command(after_help = "Examples:\n  tailor show 3f9a1c20d7e4\n  tailor show 3f9a1c20d7e4 | less\n\
        Exit codes: 0 printed, 2 an error")]
    Show(ShowArgs),
    /// Remove a text that was cut from the vault for good.
    ///
    /// Such as a secret. The marker names the id.
    #[command(after_help = "Examples:\n  tailor forget 3f9a1c20d7e4\n\
        The session keeps the marker, and `undo` can no longer put the text back. It may still be in other sessions and backups.\n\
        Exit codes: 0 forgotten, 2 an error")]
    Forget(ForgetArgs),
    /// Delete originals that no longer need to be kept.
    #[command(after_help = "Examples:\n  tailor gc --dry-run\n  tailor gc --older-than 7d --max-size 500M\n\
        Exit codes: 0 done, 2 an error")]
    Gc(GcArgs),
    /// Keep what sessions become, and put it back: deleted, emptied or rewritten.
    ///
    /// What lies on the disk is only read. Nothing is kept until you ask for it.
    #[command(
        after_help = "Examples:\n  tailor keep now\n  tailor keep list\n  tailor keep restore 0d0f7b2c\n\
        The daemon does so all the time with `mode = \"on\"` in the table [keep] of the configuration.\n\
        Exit codes: 0 done, 1 something is damaged, 2 an error"
    )]
    Keep(KeepCommand),
    /// Take out of a database what newer rows supersede.
    ///
    /// OpenCode's and Kilo's log of events, which keeps a copy of a message for each change of it. With the program stopped.
    #[command(after_help = "Examples:\n  tailor prune --dry-run ~/.local/share/opencode/opencode.db\n  \
        tailor prune ~/.local/share/opencode/opencode.db\n  tailor prune --vacuum ~/.local/share/opencode/opencode.db\n\
        Undo: tailor undo FILE\n\
        Exit codes: 0 done or nothing to do, 1 not now, 2 an error")]
    Prune(PruneArgs),
    /// Watch transcripts and repair them while they grow.
    ///
    /// Writes nothing unless the mode is `enforce`.
    #[command(
        after_help = "Examples:\n  tailor watch\n  tailor watch ~/.openclaw --mode enforce --settle 10s\n  \
        tailor watch --json\n\
        SIGHUP reloads the configuration, SIGTERM stops it within a second.\n\
        Exit codes: 0 stopped, 2 an error"
    )]
    Watch(WatchArgs),
    /// Show how the daemon is doing.
    #[command(after_help = "Examples:\n  tailor status\n  tailor status --json | jq .troubles\n\
        Exit codes: 0 all is well, 1 sessions are left alone or the configuration is refused, 2 no daemon answers")]
    Status(AskStatus),
    /// Check or print the configuration.
    #[command(after_help = "Examples:\n  tailor config check\n  tailor config print\n\
        Exit codes: 0 OK, 1 something is probably not meant, 2 an error")]
    Config(ConfigCommand),
    /// Explain a rule, the text of an API error, or a profile.
    #[command(after_help = "Examples:\n  tailor explain P1\n  tailor explain oversized-result\n  \
        tailor explain 'messages.2: `tool_use` ids were found without …' session.jsonl\n  \
        tailor explain - < error.txt\n  tailor explain chatcli\n  tailor explain\n\
        Exit codes: 0 explained, 2 not known, or an error")]
    Explain(ExplainArgs),
    /// Print the JSON Schema of what --json prints.
    #[command(after_help = "Examples:\n  tailor schema > tailor.schema.json\n\
        `$defs` has an entry for each command, such as `tailor scan`. For the configuration: tailor config schema\n\
        Exit codes: 0 printed, 2 an error")]
    Schema(Json),
    /// Print completions for a shell.
    #[command(
        after_help = "Examples:\n  tailor completions bash > ~/.local/share/bash-completion/completions/tailor\n  \
        tailor completions zsh > \"${fpath[1]}/_tailor\"\n  \
        tailor completions fish > ~/.config/fish/completions/tailor.fish\n\
        They also offer codes, groups, profiles and ids of sessions.\n\
        Exit codes: 0 printed, 2 an error"
    )]
    Completions(Completions),
    /// Print ids of the newest sessions, for completions.
    #[command(hide = true, after_help = "Example:\n  tailor complete 0d0f")]
    Complete(Complete),
    /// Write the manual pages into a folder.
    #[command(hide = true, after_help = "Examples:\n  tailor man ~/.local/share/man/man1")]
    Man(Man),
    /// What an agent runs when a session begins or ends.
    #[command(
        hide = true,
        after_help = "Example:\n  echo '{\"transcript_path\":\"session.jsonl\"}' | tailor hook start\n\
        Exit code: 0, whatever happens, so that no agent is kept from working."
    )]
    Hook(HookArgs),
}

#[derive(ClapArgs)]
#[command(next_display_order = EVERYDAY)]
pub(crate) struct ScanArgs {
    /// Say whether this provider would accept the session, and what it would refuse, instead of what is wrong.
    ///
    /// Such as `anthropic`, `gemini` or `openai-codex`, with `/MODEL` where models differ. Or which rows of a file a trainer
    /// would refuse or drop, such as `openai-finetune`, `llamafactory` or `trl`.
    #[arg(long = "for", value_name = "PROVIDER[/MODEL]", value_parser = provider, requires = "paths", conflicts_with = "lines")]
    pub(crate) target: Option<String>,
    #[command(flatten)]
    pub(crate) shared: CheckArgs,
    #[command(flatten)]
    pub(crate) data_set: DataSet,
    #[command(flatten)]
    allowed: Allowed,
    /// Read every file, also those that have not changed since the last scan.
    #[arg(long, help_heading = None::<&str>, hide_short_help = true)]
    no_cache: bool,
    /// Skip files that have not changed since the last scan, also under CI (where the variable CI is set).
    #[arg(long, conflicts_with = "no_cache", help_heading = None::<&str>, hide_short_help = true)]
    cache: bool,
}

/// Options that are listed first, in an order of their own, come before all others.
const EVERYDAY: usize = 4;

#[derive(ClapArgs)]
#[expect(clippy::struct_excessive_bools, reason = "flags that have nothing to do with each other")]
#[command(next_display_order = EVERYDAY)]
pub(crate) struct FixArgs {
    /// Report what would change, but change nothing.
    #[arg(long, display_order = 0)]
    pub(crate) dry_run: bool,
    /// Show each change.
    ///
    /// Removed text is shown only with --show-content.
    #[arg(long, display_order = 1, conflicts_with = "lines")]
    pub(crate) diff: bool,
    /// Show text from the transcript in --diff.
    #[arg(long, requires = "diff", hide_short_help = true)]
    pub(crate) show_content: bool,
    /// Repair the sessions of all agents, without asking.
    ///
    /// Without this and without a PATH, they are listed, and you are asked on a terminal.
    #[arg(long, conflicts_with = "paths")]
    pub(crate) all: bool,
    /// Write repaired copies into this folder instead.
    ///
    /// The originals stay as they are.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["dry_run", "lines"])]
    pub(crate) copy_to: Option<PathBuf>,
    /// Also make the guarded fixes of these rules.
    ///
    /// A fix is guarded if it rewrites ids, guesses, or takes out what somebody may want; each finding names the CODE that
    /// it needs.
    #[arg(long, value_name = "CODE", value_delimiter = ',', value_parser = names::rules(), hide_possible_values = true, display_order = 3)]
    pub(crate) allow: Vec<String>,
    /// How long a file must rest [default: 5s]
    ///
    /// A file that was written to more recently is not replaced. Pass 0 if no agent is running.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) settle: Option<Duration>,
    /// How long a file must be without writes before older history is rewritten, which prompt caches may hold: old results
    /// (rules stale-result, crowded-window), model messages (oversized-reply), and what comes before signed thinking
    /// [default: 1h; 0 if --settle is 0]
    #[arg(long, value_name = "DURATION", value_parser = duration, hide_short_help = true)]
    pub(crate) settle_stale: Option<Duration>,
    /// Keep trying for this long (such as 90 or 10m) while a file cannot be repaired yet, as while its agent is running.
    #[arg(long, value_name = "DURATION", value_parser = duration, conflicts_with_all = ["dry_run", "copy_to", "lines"], hide_short_help = true)]
    pub(crate) wait: Option<Duration>,
    /// With --wait: touch nothing as long as this process lives.
    #[arg(long, value_name = "PID", requires = "wait", hide = true)]
    pub(crate) after: Option<u32>,
    #[command(flatten)]
    pub(crate) vault: VaultAt,
    /// Also write each cut text to a plain file in this folder, and name that file in the marker.
    #[arg(long, value_name = "DIR", value_parser = spill, hide_short_help = true, conflicts_with = "lines")]
    pub(crate) spill: Option<TextFolder>,
    #[command(flatten)]
    pub(crate) shared: CheckArgs,
    #[command(flatten)]
    pub(crate) data_set: DataSet,
}

/// Where originals are.
#[derive(ClapArgs, Clone)]
pub(crate) struct VaultAt {
    /// The folder of originals [default: the one in the configuration, or `tailor` in `$XDG_STATE_HOME` or
    /// `~/.local/state`]
    #[arg(long, value_name = "DIR", hide_short_help = true)]
    vault: Option<PathBuf>,
}

impl VaultAt {
    /// The vault.
    pub(crate) fn open(&self, config: &Loaded) -> Result<Vault, String> {
        self.vault.clone().map_or_else(|| config.vault(), Ok).map(Vault::new)
    }
}

/// What every command is asked that changes files in another way than `fix`.
#[derive(ClapArgs, Clone)]
pub(crate) struct ChangeArgs {
    /// How long a file must rest [default: 5s]
    ///
    /// A file that was written to more recently is not replaced. Pass 0 if no agent is running.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    settle: Option<Duration>,
    #[command(flatten)]
    pub(crate) json: Json,
    #[command(flatten)]
    config: ConfigFile,
    #[command(flatten)]
    vault: VaultAt,
}

/// What is the case if the settle time says whether an agent is running.
fn settled(situation: Situation, settle: Duration) -> Situation {
    Situation { agent_gone: settle.is_zero(), ..situation }
}

impl ChangeArgs {
    /// Reads the configuration.
    pub(crate) fn load(&self) -> Result<Loaded, String> {
        self.config.load()
    }

    /// The options, with the policies that `of` makes of the configuration. Older history does not wait, because these
    /// commands exist to change it.
    fn options(&self, dry_run: bool, of: impl FnOnce(&Loaded) -> Policies) -> Result<Options, String> {
        let config = self.config.load()?;
        let settle = self.settle.unwrap_or(config.settings.settle);
        Ok(Options {
            policy: of(&config),
            situation: settled(Situation::default(), settle),
            mode: if dry_run { Mode::DryRun } else { Mode::Fix },
            settle,
            settle_stale: Duration::ZERO,
            memory_settle: config.settings.memory_settle,
            beside_only: false,
            // A dry run needs the vault too, to know what earlier runs did.
            vault: Some(self.vault.open(&config)?),
            worth: None,
        })
    }
}

#[derive(ClapArgs)]
#[expect(clippy::struct_excessive_bools, reason = "flags that have nothing to do with each other")]
pub(crate) struct UndoArgs {
    /// Files, or folders of transcripts. Without one, the newest runs are listed.
    #[arg(value_name = "PATH", value_parser = session(), value_hint = AnyPath)]
    pub(crate) paths: Vec<PathBuf>,
    /// Undo in every file that Tailor has changed.
    #[arg(long, conflicts_with = "paths")]
    pub(crate) all: bool,
    /// Undo all runs of each file, back to before the first, instead of the newest one.
    #[arg(long, conflicts_with = "run")]
    pub(crate) to_original: bool,
    /// The run to undo, instead of the newest one.
    #[arg(long, value_name = "ID", requires = "paths")]
    pub(crate) run: Option<String>,
    /// Restore what can be restored: not a compaction that the agent has continued from, not what another program has
    /// changed since, and no forgotten text.
    #[arg(long)]
    pub(crate) partly: bool,
    /// Undo even if the model has signed thinking since: the API then refuses the session until that thinking is
    /// removed.
    #[arg(long)]
    pub(crate) ignore_thinking: bool,
    /// List the runs of each file, and undo none.
    #[arg(long, conflicts_with_all = ["run", "to_original", "dry_run", "partly", "ignore_thinking"])]
    pub(crate) list: bool,
    /// Report what would be undone, but change nothing.
    #[arg(long)]
    pub(crate) dry_run: bool,
    #[command(flatten)]
    pub(crate) change: ChangeArgs,
}

/// What a summariser can take.
#[derive(ClapArgs)]
#[command(next_help_heading = "Limits (0 switches one off)")]
pub(crate) struct ChunkLimits {
    /// Most tokens in a chunk [default: two fifths of the window]
    ///
    /// At least 256.
    #[arg(long, value_name = "TOKENS", value_parser = at_least(chunk::TOKENS_MIN))]
    max_tokens: Option<u64>,
    /// Most characters in a chunk, besides its tokens; by default eight for each token. At least 512.
    #[arg(long, value_name = "CHARS", value_parser = at_least(chunk::CHARS_MIN), hide_short_help = true)]
    max_chars: Option<u64>,
    /// Longest message; of a longer one, only role, tool and size are printed.
    #[arg(long, value_name = "CHARS", default_value = "100k", value_parser = count, hide_short_help = true)]
    max_message_chars: u64,
    /// Most tokens in all chunks together; the oldest messages are left out.
    #[arg(long, value_name = "TOKENS", default_value = "0", value_parser = count)]
    max_total_tokens: u64,
    /// The summariser's context window; a message that takes half of it, with a fifth to spare, is too long.
    #[arg(long, value_name = "TOKENS", default_value_t = WINDOW_TOKENS, value_parser = count, hide_short_help = true)]
    window_tokens: u64,
    /// How tokens are counted: four characters each, or exactly as OpenAI's newer models do.
    #[arg(long, default_value = "chars4", value_parser = EnumValueParser::<Tokenizer>::new().try_map(Tokenizer::built_in))]
    pub(crate) tokenizer: Tokenizer,
}

impl ChunkLimits {
    /// The limits, with a function that counts tokens.
    pub(crate) fn limits<'t>(&self, count: &'t dyn Fn(&str) -> u64) -> chunk::ChunkBounds<'t> {
        // The share of the window that OpenClaw uses for a chunk.
        const SHARE_PERCENT: u64 = 40;
        let window = if self.window_tokens == 0 { WINDOW_TOKENS } else { self.window_tokens };
        chunk::ChunkBounds {
            tokens_max: self.max_tokens.unwrap_or(window.saturating_mul(SHARE_PERCENT) / 100),
            chars_max: self.max_chars.unwrap_or(0),
            message_chars_max: self.max_message_chars,
            window_tokens: self.window_tokens,
            budget_tokens: self.max_total_tokens,
            count,
        }
    }
}

#[derive(ClapArgs)]
pub(crate) struct ChunkArgs {
    /// The session's file; `-` is standard input.
    #[arg(value_name = "PATH", value_parser = session(), value_hint = AnyPath)]
    pub(crate) path: PathBuf,
    /// Chunks are JSON anyway.
    #[command(flatten)]
    _json: Json,
    #[command(flatten)]
    pub(crate) limits: ChunkLimits,
}

#[derive(ClapArgs)]
pub(crate) struct CompactArgs {
    /// The session's file.
    #[arg(value_name = "PATH", value_parser = session(), value_hint = AnyPath)]
    pub(crate) path: PathBuf,
    /// The command that summarises; the shell runs it.
    #[arg(long, value_name = "COMMAND", required_unless_present = "dry_run")]
    pub(crate) with: Option<String>,
    /// How many messages stay as they are, starting at a user message.
    #[arg(long, value_name = "MESSAGES", default_value_t = recover::KEEP, value_parser = at_least(1))]
    pub(crate) keep: u64,
    /// Show the chunks and what would stay, but run and change nothing.
    #[arg(long)]
    pub(crate) dry_run: bool,
    #[command(flatten)]
    pub(crate) change: ChangeArgs,
    #[command(flatten)]
    pub(crate) limits: ChunkLimits,
    /// What to do with signed thinking that would stay.
    ///
    /// Keep it and refuse, strip it, or ignore it.
    #[arg(long, value_enum, default_value_t = ThinkingChoice::Strip)]
    thinking: ThinkingChoice,
}

impl CompactArgs {
    pub(crate) fn options(&self) -> Result<Options, String> {
        self.change.options(self.dry_run, |config| {
            config.policies().map(|policy| policy.thinking = self.thinking.signed())
        })
    }
}

/// How often a session is recovered in a row.
const RECOVERIES_MAX: u64 = 3;

#[derive(ClapArgs)]
pub(crate) struct RecoverArgs {
    /// The session's file.
    #[arg(value_name = "PATH", value_parser = session(), value_hint = AnyPath)]
    pub(crate) path: PathBuf,
    /// The error text of the API; by default the last error in the transcript.
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub(crate) error: Option<String>,
    /// How many tokens to shorten it to [default: 60% of the window]
    ///
    /// Whatever the error was. Without this, half as many after each attempt that the API refused again.
    #[arg(long, value_name = "TOKENS", value_parser = at_least(1))]
    pub(crate) target_tokens: Option<u64>,
    /// How much to cut instead.
    ///
    /// Whatever the error was: 1 halves the limits, 2 keeps the last messages, 3 the last four, cut.
    #[arg(long, value_name = "1|2|3", value_parser = level, conflicts_with = "target_tokens")]
    pub(crate) level: Option<RecoverLevel>,
    /// How many messages stay in context at level 2.
    ///
    /// Level 3 keeps 4 at most.
    #[arg(long, value_name = "MESSAGES", default_value_t = recover::KEEP, value_parser = at_least(1))]
    pub(crate) keep: u64,
    /// How often to try in a row before giving up (0 for no limit).
    #[arg(long, value_name = "COUNT", default_value_t = RECOVERIES_MAX, hide_short_help = true)]
    pub(crate) max_attempts: u64,
    /// The output token limit at which the answer was cut off (4,096), for the advice.
    #[arg(long, value_name = "TOKENS", default_value_t = 0, hide_default_value = true, value_parser = count, hide_short_help = true)]
    pub(crate) output_tokens: u64,
    /// The largest output token limit that the provider allows, for the advice.
    #[arg(long, value_name = "TOKENS", default_value_t = 0, hide_default_value = true, value_parser = count, hide_short_help = true)]
    pub(crate) max_output_tokens: u64,
    /// Report what would change, but change nothing.
    #[arg(long)]
    pub(crate) dry_run: bool,
    #[command(flatten)]
    pub(crate) change: ChangeArgs,
    #[command(flatten)]
    limits: LimitFlags,
}

impl RecoverArgs {
    /// What `recover` does with this file if no option is given.
    pub(crate) fn for_file(path: PathBuf, change: ChangeArgs) -> Self {
        Self {
            path,
            error: None,
            target_tokens: None,
            level: None,
            keep: recover::KEEP,
            max_attempts: RECOVERIES_MAX,
            output_tokens: 0,
            max_output_tokens: 0,
            dry_run: false,
            change,
            limits: GivenValues(Vec::new()),
        }
    }

    pub(crate) fn recovery(&self) -> Recovery {
        let (error, keep) = (self.error.clone(), self.keep);
        let (target_tokens, attempts_max) = (self.target_tokens, self.max_attempts);
        Recovery { error, level: self.level, keep, target_tokens, only_new: false, attempts_max }
    }

    /// The options. Thinking that would prevent the repair is stripped by default, because the session is unusable as
    /// it is.
    pub(crate) fn options(&self) -> Result<Options, String> {
        self.change.options(self.dry_run, |config| {
            let policies = self.limits.policies(config);
            if self.limits.get("thinking").is_some() {
                return policies;
            }
            policies.map(|policy| policy.thinking = SignedThinking::Strip)
        })
    }
}

#[derive(ClapArgs)]
pub(crate) struct ForgetArgs {
    /// The id in the marker: 8 to 64 hex digits.
    #[arg(value_name = "ID", required_unless_present = "secret")]
    pub(crate) ids: Vec<String>,
    /// The hash of a secret, as `scan --only secrets` says it: all that runs kept of it.
    #[arg(long, value_name = "HASH")]
    pub(crate) secret: Vec<String>,
    /// Only say how many runs hold the secret.
    #[arg(long, requires = "secret", conflicts_with = "ids")]
    pub(crate) dry_run: bool,
    #[command(flatten)]
    pub(crate) json: Json,
    #[command(flatten)]
    pub(crate) config: ConfigFile,
    #[command(flatten)]
    pub(crate) vault: VaultAt,
}

#[derive(ClapArgs)]
pub(crate) struct ExportArgs {
    /// The session: FILE#SESSION, or FILE if there is only one in it.
    #[arg(value_name = "FILE#SESSION")]
    pub(crate) path: PathBuf,
    /// Print to standard error, as an object of JSON, how much was printed and what could not be read.
    ///
    /// Standard output has the session and nothing else.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(ClapArgs)]
pub(crate) struct DiffArgs {
    /// A transcript, or FILE#SESSION.
    #[arg(value_name = "OLD")]
    pub(crate) old: PathBuf,
    /// The other copy.
    #[arg(value_name = "NEW")]
    pub(crate) new: PathBuf,
    #[command(flatten)]
    pub(crate) json: Json,
}

#[derive(ClapArgs)]
pub(crate) struct ShowArgs {
    /// The id in the marker: 8 to 64 hex digits.
    #[arg(value_name = "ID", required = true)]
    pub(crate) ids: Vec<String>,
    /// Print it as it was in the file, with its escapes.
    #[arg(long, conflicts_with = "json")]
    pub(crate) raw: bool,
    #[command(flatten)]
    pub(crate) json: Json,
    #[command(flatten)]
    pub(crate) config: ConfigFile,
    #[command(flatten)]
    pub(crate) vault: VaultAt,
}

#[derive(ClapArgs)]
pub(crate) struct PruneArgs {
    /// Databases, or FILE#SESSION for one session.
    #[arg(value_name = "FILE", required = true, value_hint = FilePath)]
    pub(crate) paths: Vec<PathBuf>,
    /// Then have SQLite write the file anew, without free pages.
    ///
    /// If there is room: it needs twice as much as what stays.
    #[arg(long)]
    pub(crate) vacuum: bool,
    /// Report what would be removed, but remove nothing.
    #[arg(long)]
    pub(crate) dry_run: bool,
    #[command(flatten)]
    pub(crate) json: Json,
    #[command(flatten)]
    pub(crate) config: ConfigFile,
    #[command(flatten)]
    pub(crate) vault: VaultAt,
}

#[derive(ClapArgs)]
pub(crate) struct GcArgs {
    /// Delete runs older than this; never the newest one of a file.
    #[arg(long, value_name = "DURATION", default_value = "30d", value_parser = long_duration)]
    pub(crate) older_than: Duration,
    /// Then delete the oldest runs until no more than this is kept.
    #[arg(long, value_name = "SIZE", default_value = "5GiB", value_parser = size)]
    pub(crate) max_size: u64,
    /// Report what would be deleted, but delete nothing.
    #[arg(long)]
    pub(crate) dry_run: bool,
    #[command(flatten)]
    pub(crate) json: Json,
    #[command(flatten)]
    pub(crate) config: ConfigFile,
    #[command(flatten)]
    pub(crate) vault: VaultAt,
}

#[derive(ClapArgs)]
pub(crate) struct ExplainArgs {
    /// A rule's code or name, a profile (`--profile`), or the text of an error, `-` for standard input; lists all rules by
    /// default.
    #[arg(value_name = "CODE|ERROR TEXT", value_parser = names::topics(), hide_possible_values = true)]
    pub(crate) what: Option<String>,
    /// The session that the error is about: its file, its id, or a folder. By default all sessions of known agents are
    /// searched, newest first. Words of a text without quotes may come before it.
    #[arg(value_name = "FILE", value_hint = AnyPath)]
    pub(crate) rest: Vec<OsString>,
    /// List the families of errors that are known.
    #[arg(long, conflicts_with = "what")]
    pub(crate) list: bool,
    #[command(flatten)]
    pub(crate) json: Json,
    #[command(flatten)]
    pub(crate) config: ConfigFile,
}

#[derive(ClapArgs)]
pub(crate) struct WatchArgs {
    #[command(flatten)]
    pub(crate) at: ConfigAt,
    /// Format of the log; by default text, or the journal under systemd.
    #[arg(long, value_enum, hide_short_help = true)]
    pub(crate) log_format: Option<LogFormat>,
    /// The same as --log-format json.
    #[arg(long, conflicts_with = "log_format")]
    json: bool,
}

impl WatchArgs {
    pub(crate) fn log_format(&self) -> Option<LogFormat> {
        if self.json { Some(LogFormat::Json) } else { self.log_format }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// One line of text for each action.
    Plain,
    /// One JSON object for each action.
    Json,
}

#[derive(ClapArgs)]
pub(crate) struct AskStatus {
    #[command(flatten)]
    pub(crate) json: Json,
    #[command(flatten)]
    pub(crate) at: ConfigAt,
}

#[derive(ClapArgs)]
pub(crate) struct ConfigCommand {
    #[command(subcommand)]
    pub(crate) what: ConfigWhat,
}

#[derive(Subcommand)]
pub(crate) enum ConfigWhat {
    /// Check the configuration, and report all that is wrong with it.
    Check(ConfigRead),
    /// Print the settings in force, defaults included.
    Print(ConfigRead),
    /// Write a configuration file in which each setting is explained and commented out.
    Init(ConfigInit),
    /// Print a JSON Schema of configuration files, for editors and checks.
    Schema(Json),
}

#[derive(ClapArgs)]
pub(crate) struct ConfigRead {
    #[command(flatten)]
    pub(crate) json: Json,
    #[command(flatten)]
    pub(crate) at: ConfigAt,
}

#[derive(ClapArgs)]
pub(crate) struct ConfigInit {
    /// The file; `-` is standard output. By default the one that is read for you. None is replaced.
    #[arg(value_name = "FILE", value_hint = AnyPath)]
    pub(crate) file: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) json: Json,
}

/// Where the configuration is, and what flags put over it.
#[derive(ClapArgs)]
pub(crate) struct ConfigAt {
    /// Files or folders; by default those of the configuration, or the folders of known agents.
    #[arg(value_name = "PATH", value_hint = FilePath)]
    paths: Vec<PathBuf>,
    #[command(flatten)]
    config: ConfigFile,
    #[command(flatten)]
    daemon: GivenValues<String>,
    /// Any key of the configuration, written as in a file.
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
}

impl ConfigAt {
    /// Reads the configuration and applies the flags, or returns everything that is wrong with it.
    pub(crate) fn read(&self) -> Result<Loaded, Vec<String>> {
        load(self.config.places(), &self.flags(), self.roots())
    }

    /// Reads the configuration, or returns all errors in one text.
    pub(crate) fn load(&self) -> Result<Loaded, String> {
        self.read().map_err(|wrong| wrong.join("; "))
    }

    /// Whether a flag names the socket.
    pub(crate) fn names_socket(&self) -> bool {
        self.daemon.get("socket").is_some()
    }

    /// The daemon's socket, judged by flags alone, without the configuration.
    pub(crate) fn socket(&self) -> PathBuf {
        self.daemon.get("socket").map_or_else(|| Settings::default().socket(), PathBuf::from)
    }

    /// The flags as lines of a configuration file.
    fn flags(&self) -> Vec<String> {
        let line = |(key, value): &(&str, String)| format!("{key} = {}", toml::Value::String(value.clone()));
        self.set.iter().cloned().chain(self.daemon.0.iter().map(line)).collect()
    }

    /// The paths, if there are any.
    fn roots(&self) -> Option<toml::Value> {
        let text = |path: &PathBuf| toml::Value::String(path.to_string_lossy().into_owned());
        (!self.paths.is_empty()).then(|| toml::Value::Array(self.paths.iter().map(text).collect()))
    }
}

/// What `scan` and `fix` have in common.
#[derive(ClapArgs)]
pub(crate) struct CheckArgs {
    /// Files or folders; `-` is standard input [default: all known agents]
    ///
    /// Or ids of sessions. `-` stands alone.
    #[arg(value_name = "PATH", value_parser = session(), value_hint = AnyPath)]
    pub(crate) paths: Vec<PathBuf>,
    /// Only these rules.
    #[arg(long, value_name = "CODE", value_delimiter = ',', value_parser = names::rules(), hide_possible_values = true, display_order = 2)]
    pub(crate) select: Vec<String>,
    /// Only the rules of this group.
    ///
    /// `fix` makes their guarded fixes too, as with --allow.
    #[arg(long, hide_short_help = true, value_name = "GROUP", value_parser = names::groups(group), hide_possible_values = true, conflicts_with = "select")]
    pub(crate) only: Option<Group>,
    /// Skip these rules.
    #[arg(long, value_name = "CODE", value_delimiter = ',', value_parser = names::rules(), hide_possible_values = true)]
    pub(crate) ignore: Vec<String>,
    /// Leave out files and folders below PATH that match this, as in .gitignore.
    #[arg(long, hide_short_help = true, value_name = "GLOB", value_parser = glob)]
    exclude: Vec<String>,
    /// Below PATH, also read what .gitignore and .ignore leave out, and hidden folders.
    #[arg(long, hide_short_help = true)]
    no_ignore: bool,
    /// Exit with 1 if findings of this severity or worse, or of this rule, remain [default: error; of `fix`: warning]
    #[arg(long, value_name = "note|warning|error|CODE", value_delimiter = ',', value_parser = names::severities_and_rules(fail_on), hide_possible_values = true, help_heading = "Results", hide_short_help = true)]
    fail_on: Vec<FailOn>,
    /// Read the files as this format, whatever they look like.
    #[arg(long = "as", hide_short_help = true, value_name = "FORMAT", value_parser = names::formats(), hide_possible_values = true)]
    told: Option<&'static str>,
    /// The error text of the API, for what the file alone does not tell: expired server results, missing tools, encrypted
    /// items.
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true, hide_short_help = true)]
    pub(crate) error: Option<String>,
    #[command(flatten)]
    pub(crate) results: ResultArgs,
    #[command(flatten)]
    pub(crate) limits: LimitFlags,
    #[command(flatten)]
    pub(crate) config: ConfigFile,
}

/// The limits of the policy that flags give. What is not asked for is the configuration's, or the profile's; 0 switches
/// a limit off.
pub(crate) type LimitFlags = GivenValues<SettingEdit>;

/// What makes the exit code 1.
#[derive(Clone, Debug)]
pub(crate) enum FailOn {
    Severity(Severity),
    Code(String),
}

impl LimitFlags {
    /// The configuration's policies with these limits applied. A profile replaces all limits, including those of single
    /// agents.
    pub(crate) fn policies(&self, config: &Loaded) -> Policies {
        let mut policies = config.policies();
        if self.get("profile").is_some() {
            policies = Policy::clone(policies.all()).into();
        }
        policies.map(|policy| {
            let mut settings = Settings { policy: policy.clone(), ..Settings::default() };
            self.0.iter().for_each(|(_, edit)| edit.apply(&mut settings));
            *policy = settings.policy;
        })
    }
}

impl CheckArgs {
    /// The files that are worked on. Where agents keep their sessions, nothing is ignored unless it is asked for.
    fn files(&self, config: &Loaded) -> Result<FileChoice, String> {
        let ignored = !(self.no_ignore || self.paths.is_empty());
        let left_out = LeftOut { globs: self.exclude.clone(), ignored, elsewhere: config.exclude()? };
        Ok(FileChoice { left_out, ignores: config.file_ignores()? })
    }

    /// The current time, and the error if one is given.
    fn situation(&self) -> Situation {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).ok();
        Situation { now_ms: since.map(millis), error: self.error.clone(), ..Situation::default() }
    }

    /// The configuration's policies with the flags applied.
    pub(crate) fn policies(&self, config: &Loaded) -> Policies {
        let only = self.only();
        let first = self.only.iter().flat_map(|group| group.first()).map(str::to_string);
        let together: Vec<String> = only.iter().cloned().chain(first).collect();
        let select = if only.is_empty() { &self.select } else { &together };
        let policies = self.limits.policies(config);
        policies.map(|policy| {
            policy.format = self.told;
            let selection = &mut policy.selection;
            for (place, asked) in [(&mut selection.select, select), (&mut selection.ignore, &self.ignore)] {
                if !asked.is_empty() {
                    place.clone_from(asked);
                }
            }
            policy.selection.allow.extend(only.iter().cloned());
        })
    }

    /// The codes of the rules in `--only`, whose guarded fixes it allows; empty without it.
    fn only(&self) -> Vec<String> {
        self.only.iter().flat_map(|group| group.codes()).map(str::to_string).collect()
    }

    /// A rule that needs a limit would never fail without one.
    fn check_fail_on(&self, budget: &Budget) -> Result<(), String> {
        let missing = |on: &FailOn| match on {
            FailOn::Code(code) => check::limit_missing(code, budget).map(|option| (code.clone(), option)),
            FailOn::Severity(_) => None,
        };
        match self.fail_on.iter().find_map(missing) {
            Some((code, option)) => {
                Err(format!("--fail-on {code} never fails without a limit: give `scan` {option}"))
            }
            None => Ok(()),
        }
    }

    /// Whether a finding makes the exit code 1: one that `--fail-on` selects, or else one of at least this severity.
    pub(crate) fn fails(&self, finding: &Finding, default: Severity) -> bool {
        let fails = |on: &FailOn| match on {
            FailOn::Severity(severity) => finding.severity >= *severity,
            FailOn::Code(code) => finding.rule.code() == code,
        };
        // Who asks for such a rule wants to know.
        let fails_by_default = || finding.severity >= default || finding.rule.is_on_request();
        if self.fail_on.is_empty() { fails_by_default() } else { self.fail_on.iter().any(fails) }
    }
}

/// A provider whose contract is known, perhaps with a model, or a trainer.
fn provider(text: &str) -> Result<String, String> {
    if Target::read(text).is_some() || trainer::find(text).is_some() {
        return Ok(text.to_string());
    }
    let names: Vec<&str> = CONTRACTS.iter().map(|contract| contract.name).collect();
    let trainers: Vec<&str> = TRAINERS.iter().map(|trainer| trainer.name).collect();
    let (names, trainers) = (names.join(", "), trainers.join(", "));
    Err(format!(
        "what this provider accepts is not known; known are {names}, and of rows to train on {trainers}"
    ))
}

impl ScanArgs {
    pub(crate) fn asked(&self) -> Result<ScanInputs, String> {
        let budget = self.allowed.budget();
        self.shared.check_fail_on(&budget)?;
        let config = self.shared.config.load_below(&self.shared.paths)?;
        let policy = self.shared.policies(&config).map(|policy| policy.budget = budget);
        let wanted = self.cache || (!self.no_cache && !is_ci());
        let cache = if wanted { config.cache(self.cache) } else { None };
        let options = Options { policy, situation: self.shared.situation(), ..Options::default() };
        Ok(ScanInputs { options, cache, files: self.shared.files(&config)? })
    }
}

/// Whether this runs under CI, where the index of verdicts is of no use and every file should be read.
fn is_ci() -> bool {
    std::env::var_os("CI").is_some_and(|value| !value.is_empty() && value != "false")
}

/// Which files `scan` and `fix` work on, and what differs for some.
#[derive(Clone)]
pub(crate) struct FileChoice {
    pub(crate) left_out: LeftOut,
    pub(crate) ignores: FileIgnores,
}

/// Everything that `scan` needs.
pub(crate) struct ScanInputs {
    pub(crate) options: Options,
    /// The place of the index of verdicts, if it is to be used.
    pub(crate) cache: Option<PathBuf>,
    pub(crate) files: FileChoice,
}

/// Everything that `fix` needs.
#[derive(Clone)]
pub(crate) struct FixInputs {
    /// The mode is for files that are repaired in place.
    pub(crate) options: Options,
    /// How long originals are kept.
    pub(crate) keep: RunsToKeep,
    pub(crate) files: FileChoice,
}

impl FixArgs {
    pub(crate) fn asked(&self) -> Result<FixInputs, String> {
        self.shared.check_fail_on(&Budget::default())?;
        let config = self.shared.config.load_below(&self.shared.paths)?;
        let policy = self.shared.policies(&config).map(|policy| {
            policy.spill.clone_from(&self.spill);
            if !self.allow.is_empty() {
                policy.selection.allow = [&self.allow[..], &self.shared.only()].concat();
            }
        });
        let settle = self.settle.unwrap_or(config.settings.settle);
        let options = Options {
            policy,
            situation: settled(self.shared.situation(), settle),
            mode: if self.dry_run { Mode::DryRun } else { Mode::Fix },
            settle,
            settle_stale: self.settle_stale.unwrap_or_else(|| self.stale_after(&config)),
            memory_settle: config.settings.memory_settle,
            beside_only: false,
            // A dry run stores nothing, so it needs no vault.
            vault: if self.dry_run { None } else { Some(self.vault.open(&config)?) },
            worth: None,
        };
        Ok(FixInputs { options, keep: config.keep(), files: self.shared.files(&config)? })
    }

    /// How long older history waits if no flag says so. If no agent is running, no prompt cache is worth waiting for.
    fn stale_after(&self, config: &Loaded) -> Duration {
        let at_once = self.settle.is_some_and(|settle| settle.is_zero());
        if at_once { Duration::ZERO } else { config.settings.settle_stale }
    }
}

impl UndoArgs {
    pub(crate) fn options(&self) -> Result<Options, String> {
        let thinking = if self.ignore_thinking { SignedThinking::Ignore } else { SignedThinking::Keep };
        let own = Policy { thinking, ..Policy::default() };
        self.change.options(self.dry_run, |config| config.policies().map(|policy| policy.clone_from(&own)))
    }
}

fn group(text: &str) -> Result<Group, String> {
    Group::find(text).ok_or_else(|| format!("no such group; there are {}", Group::NAMES.join(", ")))
}

fn fail_on(text: &str) -> Result<FailOn, String> {
    if let Ok(severity) = severity(text) {
        return Ok(FailOn::Severity(severity));
    }
    match rule::find(text) {
        Some(rule) => Ok(FailOn::Code(rule.code().to_string())),
        None => Err(or_meant(
            "neither note, warning or error, nor a rule (tailor explain lists them)".to_string(),
            text,
            &[&["note", "warning", "error"], &rules()[..]].concat(),
        )),
    }
}

/// A number that must not be smaller.
fn at_least(min: u64) -> impl Fn(&str) -> Result<u64, String> + Clone {
    move |text| match count(text)? {
        number if number < min => Err(format!("{number} is too few: at least {min}")),
        number => Ok(number),
    }
}

fn level(text: &str) -> Result<RecoverLevel, String> {
    let number = text.parse().ok();
    number.and_then(RecoverLevel::of_number).ok_or_else(|| "not a level: there are 1, 2 and 3".to_string())
}

fn spill(text: &str) -> Result<TextFolder, String> {
    let path = std::path::absolute(text).map_err(|error| error.to_string())?;
    path.to_str().and_then(TextFolder::new).ok_or_else(|| {
        let length = TextFolder::PATH_BYTES_MAX;
        format!("it cannot stand in a marker: at most {length} printable ASCII characters without quotes, backslashes and brackets")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_definitions_are_sound() {
        Args::command().debug_assert();
    }

    #[test]
    fn help_tells_the_defaults_of_the_settings() {
        let settings = Settings::default();
        let all = Args::command();
        let times = [("settle", settings.settle), ("settle_stale", settings.settle_stale)];
        let mut found = 0;
        for name in ["fix", "undo", "recover", "compact", "resume"] {
            let command = all.find_subcommand(name).unwrap();
            for (option, time) in times {
                let Some(arg) = command.get_arguments().find(|arg| arg.get_id() == option) else { continue };
                let help = arg.get_help().unwrap().to_string();
                let (_, default) = help.split_once("[default: ").unwrap();
                let default = default.split([']', ';']).next().unwrap();
                assert_eq!(duration(default), Ok(time), "{name}: {help}");
                found += 1;
            }
        }
        assert_eq!(found, 6);
        let Some(Command::Gc(gc)) = Args::parse_from(["tailor", "gc"]).command else { panic!("not gc") };
        assert_eq!((gc.older_than, gc.max_size), (settings.keep.age, settings.keep.bytes));
    }

    #[test]
    fn every_command_speaks_json() {
        fn silent(command: &clap::Command, path: &str, found: &mut Vec<String>) {
            let is_command = |below: &&clap::Command| !below.is_hide_set() && below.get_name() != "help";
            let below: Vec<_> = command.get_subcommands().filter(is_command).collect();
            for below in &below {
                silent(below, &format!("{path} {}", below.get_name()), found);
            }
            let speaks = command.get_arguments().any(|arg| arg.get_long() == Some("json"));
            // `tailor config` alone is none.
            if !speaks && (below.is_empty() || path == "tailor") {
                found.push(path.to_string());
            }
        }
        let mut all = Args::command();
        all.build();
        let mut found = Vec::new();
        silent(&all, "tailor", &mut found);
        assert_eq!(found, [""; 0]);
    }

    /// The ends of option names by the name of their value; values of the other names are no amounts.
    const UNITS: [(&str, &[&str]); 9] = [
        ("CHARS", &["-chars"]),
        ("TOKENS", &["-tokens"]),
        ("SIZE", &["-size"]),
        ("PIXELS", &["-pixels"]),
        ("PERCENT", &["-percent", "tolerance"]),
        ("TURNS", &["-turns"]),
        ("MESSAGES", &["keep"]),
        ("COUNT", &["s", "-count"]),
        ("DURATION", &["settle", "settle-stale", "older-than", "wait", "-ttl"]),
    ];

    /// What CONTRIBUTING.md says about names of options holds for each, and no option has a second name.
    #[test]
    fn options_have_one_scheme_of_names() {
        let mut all = Args::command();
        all.build();
        let mut limits = 0;
        for command in all.get_subcommands() {
            let name = command.get_name();
            let longs: Vec<&str> = command.get_arguments().filter_map(clap::Arg::get_long).collect();
            for arg in command.get_arguments() {
                let Some(long) = arg.get_long() else { continue };
                assert_eq!(arg.get_all_aliases().unwrap_or_default(), [""; 0], "{name}: --{long}");
                let unit = arg.get_value_names().map_or("", |names| names[0].split('|').next().unwrap());
                // What is shortened is a text, and a text is measured in characters.
                let cuts = long.starts_with("cut-");
                let fits = match UNITS.iter().find(|(value, _)| *value == unit) {
                    Some((value, _)) if cuts => *value == "CHARS" && long.ends_with('s'),
                    Some((_, ends)) => ends.iter().any(|end| long.ends_with(end)),
                    None => !cuts || unit == "TOOL=CHARS",
                };
                assert!(fits, "{name}: --{long} {unit}");
                // `max` and `min` stand before what they bound, after nothing but a group and what it does.
                let words: Vec<&str> = long.split('-').collect();
                let bound = words.iter().position(|word| ["max", "min"].contains(word));
                let is_first =
                    bound.is_none_or(|at| at == 0 || ["image", "stale", "crowded"].contains(&words[0]));
                assert!(
                    is_first && words.last() != Some(&"max") && words.last() != Some(&"min"),
                    "{name}: --{long}"
                );
                limits += usize::from(bound.is_some() || cuts);
            }
            let sorted = |long: &str| {
                let mut words: Vec<String> = long.split('-').map(str::to_string).collect();
                words.sort();
                words
            };
            for (n, long) in longs.iter().enumerate() {
                let alike = longs[..n].iter().find(|other| sorted(other) == sorted(long));
                assert_eq!(alike, None, "{name}: --{long}");
            }
        }
        assert!(limits > 30, "{limits}");
    }

    /// Commands have the second names that people type, and no others.
    #[test]
    fn commands_have_few_second_names() {
        let all = Args::command();
        let aliases =
            |command: &clap::Command| command.get_all_aliases().map(str::to_string).collect::<Vec<_>>();
        let found: Vec<String> = all.get_subcommands().flat_map(aliases).collect();
        assert_eq!(found, ["ls", "check", "repair", "restore"]);
    }

    #[test]
    fn short_help_lists_each_option_that_its_examples_use() {
        let mut all = Args::command();
        all.build();
        for command in all.get_subcommands() {
            let after = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            let is_option = |c: char| c.is_ascii_alphanumeric() || c == '-';
            for option in after.split(|c| !is_option(c)).filter_map(|word| word.strip_prefix("--")) {
                let listed =
                    |arg: &clap::Arg| arg.get_long() == Some(option) && !arg.is_hide_short_help_set();
                let name = command.get_name();
                let is_help = option == "help";
                assert!(
                    is_help || command.get_arguments().any(listed),
                    "{name}: -h does not list --{option}"
                );
            }
        }
    }
}
