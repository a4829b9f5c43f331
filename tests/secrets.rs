//! Secrets: found in sessions of every format and in every place, told nowhere, masked, and gone. They are put together when the
//! tests run, so that no scanner takes this file for a leak.

use crate::rng::Rng;
use crate::stories::spell::{ROWS, StoryEvent};
use crate::support::{Dir, as_written, root};
use spans::source::read_span;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use transcript::plan::Plan;
use transcript::policy::{Policy, Selection, SignedThinking};
use transcript::{Rendered, Span, mend};

const LETTERS: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
const FIX: &[&str] = &["fix", "--only", "secrets", "--settle", "0"];

/// A secret, and the text that it stands in.
struct Planted {
    kind: &'static str,
    secret: String,
    text: String,
}

fn noise(rng: &mut Rng, letters: &str, length: usize) -> String {
    (0..length).map(|_| char::from(letters.as_bytes()[rng.below(letters.len() as u64) as usize])).collect()
}

/// A token with this beginning, in two parts.
fn token(rng: &mut Rng, kind: &'static str, begins: [&str; 2], letters: &str, length: usize) -> Planted {
    let secret = begins.concat() + &noise(rng, letters, length);
    Planted { kind, text: format!("it is {secret}, and"), secret }
}

/// One secret of each kind.
fn secrets(seed: u64) -> Vec<Planted> {
    let rng = &mut Rng::new(seed);
    let (hex, upper) = ("0123456789abcdef", "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567");
    let mut all = vec![
        token(rng, "aws-access-key", ["AK", "IA"], upper, 16),
        token(rng, "google-api-key", ["AI", "za"], LETTERS, 35),
        token(rng, "google-client-secret", ["GOC", "SPX-"], LETTERS, 28),
        token(rng, "azure-storage-key", ["Account", "Key="], LETTERS, 86),
        token(rng, "digitalocean-token", ["dop", "_v1_"], hex, 64),
        token(rng, "databricks-token", ["da", "pi"], hex, 32),
        token(rng, "vault-token", ["hv", "s."], LETTERS, 90),
        token(rng, "github-token", ["gh", "p_"], LETTERS, 36),
        token(rng, "github-token", ["github", "_pat_"], LETTERS, 82),
        token(rng, "gitlab-token", ["gl", "pat-"], LETTERS, 20),
        token(rng, "npm-token", ["np", "m_"], LETTERS, 36),
        token(rng, "pypi-token", ["pypi-", "AgEIcHlwaS5vcmc"], LETTERS, 60),
        token(rng, "docker-token", ["dckr", "_pat_"], LETTERS, 27),
        token(rng, "anthropic-key", ["sk-", "ant-api03-"], LETTERS, 95),
        token(rng, "openai-key", ["sk-", "proj-"], LETTERS, 48),
        token(rng, "model-provider-key", ["s", "k-"], LETTERS, 48),
        token(rng, "model-provider-key", ["s", "k-"], hex, 32),
        token(rng, "openrouter-key", ["sk-", "or-v1-"], hex, 64),
        token(rng, "hugging-face-token", ["h", "f_"], LETTERS, 34),
        token(rng, "groq-key", ["gs", "k_"], LETTERS, 52),
        token(rng, "xai-key", ["xa", "i-"], LETTERS, 80),
        token(rng, "slack-token", ["xo", "xb-123456789012-123456789012-"], LETTERS, 24),
        token(rng, "stripe-key", ["sk_", "live_"], LETTERS, 24),
        token(rng, "sendgrid-key", ["S", "G."], LETTERS, 66),
        token(rng, "linear-key", ["lin_", "api_"], LETTERS, 40),
        token(rng, "telegram-token", ["123456789", ":AA"], LETTERS, 33),
    ];
    let value = noise(rng, LETTERS, 30) + "1a";
    all.push(Planted { kind: "env-value", text: format!("A=1\nACME_API_KEY={value}\nB=2"), secret: value });
    let value = noise(rng, LETTERS, 12) + "1a";
    all.push(Planted { kind: "env-password", text: format!("DB_PASSWORD=\"{value}\""), secret: value });
    let value = noise(rng, LETTERS, 14) + "1a";
    all.push(Planted { kind: "url-password", text: format!("pg://app:{value}@db.test:1/x"), secret: value });
    let lines: Vec<String> = (0..20).map(|_| noise(rng, LETTERS, 64)).collect();
    let label = ["PRI", "VATE KEY"].concat();
    let key = format!("-----BEGIN {label}-----\n{}\n-----END {label}-----", lines.join("\n"));
    all.push(Planted { kind: "private-key", text: format!("$ cat id\n{key}\n$"), secret: key });
    all
}

/// As it stands between the quotes of a JSON string.
fn inside(text: &str) -> String {
    let quoted = serde_json::to_string(text).unwrap();
    quoted[1..quoted.len() - 1].to_string()
}

/// A session with a secret in what is asked, said, called and printed, and in a second line of what is printed.
fn session(planted: &Planted, row: &crate::stories::spell::FormatSpelling) -> String {
    let text = inside(&planted.text);
    let story = [
        StoryEvent::User(text.clone()),
        StoryEvent::Asked(vec![("call_1", "ls")]),
        StoryEvent::Result("call_1", format!("{text}\\n{}", inside(&planted.secret))),
        StoryEvent::Said(text.clone()),
        StoryEvent::User("and?".into()),
        StoryEvent::Said(format!("Again {}.", inside(&planted.secret))),
    ];
    let mut file = String::new();
    for line in row.spell(&story) {
        let line = line.text.replace("\"input\":{}", &format!("\"input\":{{\"id\":\"{text}\"}}"));
        let line = line.replace("\"args\":{}", &format!("\"args\":{{\"id\":\"{text}\"}}"));
        let nested = inside(&format!("{{\"id\":\"{text}\"}}"));
        _ = writeln!(
            file,
            "{}",
            line.replace("\"arguments\":\"{}\"", &format!("\"arguments\":\"{nested}\""))
        );
    }
    file
}

fn policy() -> Policy {
    let codes = || vec!["X1".to_string()];
    let selection = Selection { select: codes(), allow: codes(), ..Selection::default() };
    Policy { thinking: SignedThinking::Strip, selection, ..Policy::default() }
}

/// The plan that takes secrets out, and the text after it.
fn masked(text: &str) -> (Plan, String) {
    let source = text.as_bytes();
    let plan = mend(&source, &policy()).unwrap().repair.ok().unwrap().plan;
    let rendered = Rendered::new(&source, &plan);
    let bytes = read_span(&rendered, Span::new(0, plan.length_after())).unwrap();
    (plan, String::from_utf8(bytes).unwrap())
}

/// How often a secret stands in a text, at any depth of escapes.
fn occurrences(text: &str, secret: &str) -> usize {
    // Of a key of several lines, its second line.
    let needle = secret.lines().nth(1).unwrap_or(secret);
    text.matches(needle).count()
}

#[test]
fn what_is_planted_is_masked_in_every_format_and_a_second_run_changes_nothing() {
    let (mut planted, mut left, mut sessions) = (0, Vec::new(), 0);
    for (seed, row) in (1..).zip(ROWS.iter().filter(|row| !row.is_opaque)) {
        for secret in secrets(seed) {
            let text = session(&secret, row);
            let (plan, after) = masked(&text);
            sessions += 1;
            planted += occurrences(&text, &secret.secret);
            let count = occurrences(&after, &secret.secret);
            if count > 0 {
                left.push((row.name, secret.kind, count));
                continue;
            }
            assert!(plan.removes_secrets() && after.contains("[tailor: secret removed: "), "{}", row.name);
            assert!(
                after.lines().all(|line| serde_json::from_str::<serde_json::Value>(line).is_ok()),
                "{after}"
            );
            assert_eq!(after.lines().count(), text.lines().count(), "{}: {after}", row.name);
            assert!(masked(&after).0.is_empty(), "{} {}: {after}", row.name, secret.kind);
        }
    }
    assert!(sessions > 600 && planted > 3_000, "{sessions} sessions, {planted} secrets");
    assert_eq!(left, []);
}

/// The whole of a session with a secret of each kind.
fn many(dir: &Dir) -> (std::path::PathBuf, Vec<Planted>) {
    let row = ROWS.iter().find(|row| row.name == "pi").unwrap();
    let secrets = secrets(77);
    let story: Vec<StoryEvent> = secrets
        .iter()
        .flat_map(|planted| [StoryEvent::User(inside(&planted.text)), StoryEvent::Said("noted".into())])
        .collect();
    let text: String = row.spell(&story).into_iter().map(|line| line.text + "\n").collect();
    (dir.write("s.jsonl", text), secrets)
}

fn assert_untold(text: &str, secrets: &[Planted]) {
    for planted in secrets {
        let needle = planted.secret.lines().nth(1).unwrap_or(&planted.secret);
        assert!(!text.contains(&needle[..10]), "{} in {text}", planted.kind);
    }
}

#[test]
fn no_output_tells_a_secret() {
    let dir = Dir::new();
    let (path, secrets) = many(&dir);
    for format in ["human", "json", "sarif", "junit", "gitlab", "github"] {
        let run = dir.tailor(&["scan", "--only", "secrets", "--format", format, path.to_str().unwrap()]);
        assert_eq!(run.status, 1, "{format}");
        let said = run.text();
        assert!(
            said.contains("github-token of 40 characters") && said.contains("private-key"),
            "{format}: {said}"
        );
        assert_untold(&(said + &run.stderr), &secrets);
    }
    let diff =
        dir.tailor(&[FIX, &["--diff", "--show-content", "--dry-run", path.to_str().unwrap()]].concat());
    assert_untold(&diff.text(), &secrets);
    // Nobody asked for them.
    assert!(!dir.tailor(&["scan", path.to_str().unwrap()]).text().contains("X1"));
}

#[test]
fn each_secret_is_told_with_all_its_sessions() {
    let dir = Dir::new();
    let (path, secrets) = many(&dir);
    fs::copy(&path, dir.path("t.jsonl")).unwrap();
    let run = dir.tailor(&["scan", "--only", "secrets", dir.files().to_str().unwrap(), "--json"]);
    let summary = run.json().pop().unwrap();
    let all = summary["secrets"].as_array().unwrap();
    assert_eq!(all.len(), secrets.len());
    assert!(
        all.iter().all(|one| one["places"].as_array().unwrap().len() == 2 && one["times"] == 2),
        "{summary}"
    );
    let said = dir.tailor(&["scan", "--only", "secrets", dir.files().to_str().unwrap()]).text();
    assert!(said.contains("in 2 sessions: "), "{said}");
}

#[test]
fn what_was_masked_is_gone_and_undo_says_so() {
    let dir = Dir::new();
    let (path, secrets) = many(&dir);
    let before = fs::read_to_string(&path).unwrap();
    let run = dir.tailor(&[FIX, &[path.to_str().unwrap()]].concat());
    assert!(run.status == 0 && run.text().contains("cannot be undone"), "{}", run.text());
    let after = fs::read_to_string(&path).unwrap();
    assert_untold(&after, &secrets);
    assert_eq!(before.lines().count(), after.lines().count());
    let undo = dir.tailor(&["undo", path.to_str().unwrap()]);
    assert!(undo.status != 0 && undo.text().contains("took out secrets"), "{}{}", undo.text(), undo.stderr);
    assert_eq!(fs::read_to_string(&path).unwrap(), after);
    let list = dir.tailor(&["undo", "--list", path.to_str().unwrap()]).text();
    assert!(list.contains("secrets removed for good"), "{list}");
    assert_eq!(dir.tailor(&[FIX, &[path.to_str().unwrap()]].concat()).status, 0);
    assert_eq!(fs::read_to_string(&path).unwrap(), after, "a fixed point");
}

/// What is cut in the same run is kept with the mask in it.
#[test]
fn a_text_that_is_cut_as_well_is_kept_without_its_secret() {
    let dir = Dir::new();
    let row = ROWS.iter().find(|row| row.name == "pi").unwrap();
    let planted = secrets(5).swap_remove(7);
    let long = "row of a long list\\n".repeat(40) + &planted.text + &"\\nrow of a long list".repeat(40);
    let story = [
        StoryEvent::User("go".into()),
        StoryEvent::Asked(vec![("call_1", "ls")]),
        StoryEvent::Result("call_1", long),
        StoryEvent::Said("done".into()),
    ];
    let text: String = row.spell(&story).into_iter().map(|line| line.text + "\n").collect();
    let path = dir.write("s.jsonl", text);
    let run = dir.tailor(&[
        "fix",
        "--allow",
        "X1",
        "--cut-results",
        "300",
        "--settle",
        "0",
        path.to_str().unwrap(),
    ]);
    let after = fs::read_to_string(&path).unwrap();
    let id = after.split("tailor show ").nth(1).unwrap_or_else(|| panic!("{} {after}", run.text()));
    let shown = dir.tailor(&["show", &id[..12]]).text();
    assert!(shown.contains("[tailor: secret removed: github-token, 40 chars]"), "{shown}");
    assert_untold(&(after.clone() + &shown), &[planted]);
}

/// A session with a long result that holds a secret.
fn long_session(dir: &Dir, planted: &Planted) -> String {
    let row = ROWS.iter().find(|row| row.name == "pi").unwrap();
    let rows = "row of a long list\\n".repeat(40);
    let story = [
        StoryEvent::User("go".into()),
        StoryEvent::Asked(vec![("call_1", "ls")]),
        StoryEvent::Result("call_1", format!("{rows}{}\\n{rows}", inside(&planted.text))),
        StoryEvent::Said("done".into()),
    ];
    let text: String = row.spell(&story).into_iter().map(|line| line.text + "\n").collect();
    dir.write("s.jsonl", text).to_str().unwrap().to_string()
}

#[test]
fn what_earlier_runs_kept_of_a_secret_is_removed_by_its_hash() {
    for n in [7, 26, 29] {
        let (dir, planted) = (Dir::new(), secrets(6).swap_remove(n));
        let path = long_session(&dir, &planted);
        let found = dir.tailor(&["scan", "--only", "secrets", &path, "--json"]).file();
        let hash = found["findings"][0]["secret"]["secret_hash"].as_str().unwrap().to_string();
        assert_eq!(dir.tailor(&["keep", "now", &path]).status, 0);
        dir.tailor(&["fix", "--cut-results", "300", "--settle", "0", &path]);
        let after = fs::read_to_string(&path).unwrap();
        let id = after.split("tailor show ").nth(1).unwrap()[..12].to_string();
        assert!(dir.tailor(&["show", &id]).text().contains(planted.secret.lines().last().unwrap()));
        let told = dir.tailor(&["forget", "--secret", &hash, "--dry-run"]).text();
        assert!(told.contains("in 1 run and 1 kept generation"), "{}: {told}", planted.kind);
        assert!(dir.tailor(&["show", &id]).text().contains("row of a long list"), "a dry run");
        let other = dir.tailor(&["forget", "--secret", "0123456789abcdef"]).text();
        assert!(other.contains("in no run"), "{other}");
        let told = dir.tailor(&["forget", "--secret", &hash]).text();
        assert!(told.contains("removed from 1 run and 1 kept generation"), "{told}");
        assert!(dir.tailor(&["show", &id]).stderr.contains("tailor forget removed it"));
        let again = dir.tailor(&["forget", "--secret", &hash, "--json"]).json();
        assert_eq!((again[0]["runs"].as_u64(), again[0]["generations"].as_u64()), (Some(0), Some(0)));
        let name = Path::new(&path).file_name().unwrap().to_str().unwrap();
        assert_eq!(dir.tailor(&["keep", "restore", name, "--to", "back.jsonl"]).status, 0);
        assert!(fs::read_to_string(dir.path("back.jsonl")).unwrap().contains("***"));
        let kept = dir.tailor(&["scan", "--only", "secrets", "--json", "back.jsonl"]).file();
        assert_eq!(kept["findings"].as_array().map(Vec::len), Some(0), "{kept}");
    }
    assert_eq!(Dir::new().tailor(&["forget", "--secret", "xyz"]).status, 2);
}

#[test]
fn the_configuration_masks_and_knows_own_secrets() {
    let dir = Dir::new();
    let mut planted = secrets(8).swap_remove(7);
    planted.text = format!("{} and zap_{}", planted.text, noise(&mut Rng::new(4), LETTERS, 16));
    let path = long_session(&dir, &planted);
    let config =
        dir.write("config.toml", "[secrets]\nmode = \"mask\"\n[secrets.patterns]\n\"zap-key\" = \"zap_\"\n");
    let fix = ["fix", "--settle", "0", "--config", config.to_str().unwrap(), &path];
    assert_eq!(dir.tailor(&fix).status, 0);
    let after = fs::read_to_string(&path).unwrap();
    assert!(
        after.contains("removed: zap-key, 20 chars]") && after.contains("github-token, 40 chars]"),
        "{after}"
    );
    for wrong in ["mode = \"hide\"", "[secrets.patterns]\na = \"x\"", "[secrets.patterns]\n\"a]\" = \"xyz_\""]
    {
        let config = dir.write("config.toml", format!("[secrets]\n{wrong}\n"));
        assert_eq!(dir.tailor(&["fix", "--config", config.to_str().unwrap(), &path]).status, 2, "{wrong}");
    }
}

#[test]
fn the_docs_list_all_kinds() {
    let mut kinds: Vec<String> = Vec::new();
    for kind in transcript::secret::detectors::DETECTORS.iter().map(|row| format!("`{}`", row.kind)) {
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    assert!(kinds.len() > 50);
    let list = kinds.join(", ");
    let path = root().join("docs/secrets.md");
    let page = fs::read_to_string(&path).unwrap();
    let (before, rest) = page.split_once("<!-- kinds -->\n").unwrap();
    let (_, after) = rest.split_once("<!-- /kinds -->").unwrap();
    as_written(&path, &format!("{before}<!-- kinds -->\n{list}\n<!-- /kinds -->{after}"));
}
