//! The units in systemd/: that systemd understands them, and how much they leave open.

use crate::support::{Dir, root, skipped};
use std::fs;
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

/// The units, as if the program were installed.
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
