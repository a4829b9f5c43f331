//! The units in systemd/: whether systemd accepts them, and how much they expose; and the agent in launchd/.

use crate::support::{Dir, root, skipped};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

const UNITS: &[&str] = &["tailor@.service", "tailor.service", "tailor-scan.service", "tailor-scan.timer"];
/// In tenths.
const EXPOSURE_MAX: &str = "15";

fn analyze() -> Option<Command> {
    let command = || Command::new("systemd-analyze");
    if command().arg("--version").output().is_err() {
        skipped("the units: systemd-analyze is not installed");
        return None;
    }
    Some(command())
}

/// Copies the units, as if the program were installed.
fn installed(dir: &Dir) {
    for unit in UNITS {
        let text = fs::read_to_string(root().join("systemd").join(unit)).unwrap();
        let text = text.replace("/usr/local/bin/tailor", env!("CARGO_BIN_EXE_tailor"));
        fs::write(dir.path(unit), text.replace("%h/.cargo/bin/tailor", env!("CARGO_BIN_EXE_tailor")))
            .unwrap();
    }
}

#[test]
fn systemd_understands_every_line() {
    let Some(mut command) = analyze() else { return };
    let dir = Dir::new();
    installed(&dir);
    let verified = command.arg("verify").args(UNITS.iter().map(|unit| dir.path(unit))).output().unwrap();
    assert!(verified.status.success(), "{}", String::from_utf8_lossy(&verified.stderr));
    assert_eq!(String::from_utf8_lossy(&verified.stderr), "");
}

/// The drop-ins that are shipped, with all that is commented out in them, for units that they would go to.
#[test]
fn systemd_understands_the_drop_ins() {
    let Some(mut command) = analyze() else { return };
    let dir = Dir::new();
    installed(&dir);
    let bot = "[Unit]\nDescription=a bot\n[Service]\nExecStart=/bin/true\n";
    for unit in ["store-bot.service", "file-bot.service"] {
        fs::write(dir.path(unit), bot).unwrap();
    }
    for (unit, drop_in) in [
        ("store-bot.service", "tailor-fix.conf.example"),
        ("file-bot.service", "tailor-resume.conf.example"),
        ("tailor@.service", "tailor@.service.d/sessions.conf.example"),
    ] {
        let text = fs::read_to_string(root().join("systemd").join(drop_in)).unwrap();
        let text = text.replace("/usr/local/bin/tailor", env!("CARGO_BIN_EXE_tailor"));
        let is_setting = |line: &str| line.split_once('=').is_some_and(|(key, _)| !key.contains(' '));
        let whole: String = text
            .lines()
            .map(|line| {
                line.strip_prefix("# ").filter(|line| is_setting(line)).unwrap_or(line).to_string() + "\n"
            })
            .collect();
        assert!(whole.matches("\nExecStart").count() >= 1, "{whole}");
        fs::create_dir(dir.path(format!("{unit}.d"))).unwrap();
        fs::write(dir.path(format!("{unit}.d/x.conf")), whole).unwrap();
    }
    let units = ["store-bot.service", "file-bot.service", "tailor@.service"].map(|unit| dir.path(unit));
    let verified = command.arg("verify").args(units).output().unwrap();
    let said = String::from_utf8_lossy(&verified.stderr);
    assert!(verified.status.success() && said.is_empty(), "{said}");
}

#[test]
fn little_is_left_open() {
    let Some(mut command) = analyze() else { return };
    let dir = Dir::new();
    installed(&dir);
    let threshold = format!("--threshold={EXPOSURE_MAX}");
    command.args(["security", "--no-pager", "--offline=true", &threshold]).arg(dir.path(UNITS[0]));
    let judged = command.output().unwrap();
    let text = String::from_utf8_lossy(&judged.stdout);
    assert!(judged.status.success(), "{text}");
    assert!(text.contains("Overall exposure level"), "{text}");
}

/// Parses the agent for launchd as Apple's libraries would, and returns it as JSON. There is no launchd to test with.
fn agent() -> Option<serde_json::Value> {
    let python = "import json, plistlib, sys; print(json.dumps(plistlib.load(open(sys.argv[1], 'rb'))))";
    let file = root().join("launchd/tailor.plist");
    let Ok(read) = Command::new("python3").args(["-c", python]).arg(file).output() else {
        skipped("the agent for launchd: python3 is not installed");
        return None;
    };
    assert!(read.status.success(), "{}", String::from_utf8_lossy(&read.stderr));
    Some(serde_json::from_slice(&read.stdout).unwrap())
}

#[test]
fn what_launchd_starts_is_tailor_with_a_log_of_its_own() {
    let Some(agent) = agent() else { return };
    let dir = Dir::new();
    let logs = dir.home().join("Library/Logs");
    fs::create_dir_all(&logs).unwrap();
    let words: Vec<&str> =
        agent["ProgramArguments"].as_array().unwrap().iter().map(|word| word.as_str().unwrap()).collect();
    let script = words[2].replace("tailor watch", "tailor watch --set no_such_key=1");
    assert_ne!(script, words[2]);
    assert_eq!(agent["Umask"], 0o077);
    let script = format!("umask {:o}; {script}", agent["Umask"].as_u64().unwrap());
    let log = logs.join("tailor.log");
    // Where cargo installs programs, and where uv and pipx do.
    for place in [".cargo/bin", ".local/bin"] {
        let programs = dir.home().join(place);
        fs::create_dir_all(&programs).unwrap();
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_tailor"), programs.join("tailor")).unwrap();
        let ended = dir.command_of(words[0]).args([words[1], &script]).status().unwrap();
        assert_eq!(ended.code(), Some(2));
        assert!(fs::read_to_string(&log).unwrap().contains("no_such_key"));
        assert_eq!(fs::metadata(&log).unwrap().permissions().mode() & 0o777, 0o600);
        fs::remove_file(&log).unwrap();
        fs::remove_dir_all(programs).unwrap();
    }
}
