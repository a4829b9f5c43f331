//! The settings, one row each. Flags, keys of the configuration, `TAILOR_*` variables and the output of `config print`
//! are generated from these rows. This module knows no files and no order of precedence.

mod commented;
mod kind;
mod rows;
mod schema;
mod setting;
mod values;
mod written;

pub(crate) use commented::commented;
pub(crate) use kind::{Scalar, SettingEdit, SettingKind};
pub(crate) use rows::SETTINGS;
pub(crate) use schema::schema;
pub(crate) use setting::{Flag, Scope, Setting};
pub(crate) use values::Settings;

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/settings.md");

    /// A setting's row in the reference page.
    fn row(setting: &Setting, defaults: &mut Settings) -> String {
        let flag = setting.flag.as_ref().map(|flag| format!("`--{} {}`", flag.name, flag.unit));
        let variable = setting.scalar().map(|_| format!("`TAILOR_{}`", setting.key.to_ascii_uppercase()));
        // Default paths depend on the user.
        let is_path = matches!(setting.kind, SettingKind::Path(_));
        let default = setting.kind.print(defaults).filter(|_| !is_path).map(|value| format!("`{value}`"));
        let [flag, variable, default] = [flag, variable, default].map(Option::unwrap_or_default);
        let scope = match setting.scope {
            Scope::All => "all",
            Scope::Each => "all, one",
            Scope::Agent => "one",
            Scope::Repository => "repository",
            // The `[tools]` table is documented as a whole.
            Scope::Flag => "",
        };
        let row = [&format!("`{}`", setting.key), scope, &flag, &variable, &default, setting.help];
        format!("| {} |\n", row.map(|cell| cell.replace('|', "\\|")).join(" | "))
    }

    #[test]
    fn the_reference_page_has_each_setting() {
        let mut defaults = Settings::default();
        let rows: String = SETTINGS.iter().map(|setting| row(setting, &mut defaults)).collect();
        let table = format!(
            "| key | agents | option | variable | default | meaning |\n|---|---|---|---|---|---|\n{rows}"
        );
        let page = std::fs::read_to_string(PAGE).unwrap();
        let (above, there) = page.split_at(page.find("| key | ").unwrap());
        let updates = std::env::var_os("UPDATE").is_some();
        if updates {
            std::fs::write(PAGE, above.to_string() + &table).unwrap();
        }
        assert!(
            updates || there == table,
            "docs/settings.md should end with this table (UPDATE=1 writes it):\n{table}"
        );
    }

    #[test]
    fn keys_and_flags_are_given_once() {
        for (row, setting) in SETTINGS.iter().enumerate() {
            let name = |setting: &Setting| setting.flag.as_ref().map(|flag| flag.name);
            for other in &SETTINGS[..row] {
                assert_ne!(setting.key, other.key);
                assert!(name(setting).is_none() || name(setting) != name(other), "{}", setting.key);
            }
        }
    }

    #[test]
    fn each_flag_of_a_limit_can_be_read() {
        for setting in SETTINGS {
            let is_limit = setting.flag.as_ref().is_some_and(|flag| flag.heading.is_some());
            assert!(!is_limit || setting.kind.parser().is_some(), "{}", setting.key);
        }
    }
}
