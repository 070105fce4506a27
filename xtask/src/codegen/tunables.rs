//! What comes from `spec/tunables.toml`: the table, the document, and a plain struct for each crate that reads values.

use super::Files;
use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    tunable: Vec<Tunable>,
}

/// One value that can be chosen.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Tunable {
    name: String,
    /// Which crate reads it, without "parnass-".
    #[serde(rename = "crate")]
    room: String,
    kind: Kind,
    default: toml::Value,
    #[serde(default)]
    least: u64,
    most: Option<u64>,
    /// Whether `parnass tune` measures it.
    #[serde(default)]
    measured: bool,
    #[serde(default)]
    scope: Scope,
    #[serde(default)]
    changes: Changes,
    what: String,
}

/// Which processes have the same value.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Scope {
    #[default]
    All,
    Local,
}

/// Until when it may be changed.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum Changes {
    #[default]
    Start,
    Running,
}

#[derive(Clone, Copy, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum Kind {
    Count,
    Bytes,
    Microseconds,
    Switch,
    Text,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Kind::Count => "Count",
            Kind::Bytes => "Bytes",
            Kind::Microseconds => "Microseconds",
            Kind::Switch => "Switch",
            Kind::Text => "Text",
        }
    }

    /// The type of a field; the assembly reads texts itself.
    fn field(self) -> Option<&'static str> {
        match self {
            Kind::Count | Kind::Microseconds => Some("u32"),
            Kind::Bytes => Some("u64"),
            Kind::Switch => Some("bool"),
            Kind::Text => None,
        }
    }
}

impl Tunable {
    fn constant(&self) -> String {
        self.name.to_uppercase()
    }

    fn variable(&self) -> String {
        format!("PARNASS_{}", self.constant())
    }

    fn check(&self) -> Result<()> {
        let plain = |byte: u8| byte.is_ascii_lowercase() || byte == b'_';
        ensure!(self.name.bytes().all(plain), "a name has small letters and underscores");
        let right = match self.kind {
            Kind::Switch => self.default.is_bool(),
            Kind::Text => self.default.is_str(),
            _ => self.default.as_integer().is_some_and(|default| {
                u64::try_from(default)
                    .is_ok_and(|number| number >= self.least && self.most.is_none_or(|most| number <= most))
            }),
        };
        ensure!(right, "the default is not of its kind, or not in its range");
        if matches!(self.kind, Kind::Count | Kind::Microseconds) {
            ensure!(self.most.is_some_and(|most| most <= u64::from(u32::MAX)), "its most must fit 32 bits");
        }
        ensure!(self.what.ends_with('.'), "what it does is told in sentences");
        Ok(())
    }
}

fn grouped(number: i64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push('_');
        }
        text.push(digit);
    }
    text
}

/// As people read it, with its unit.
fn shown(kind: Kind, value: &toml::Value) -> String {
    match value {
        toml::Value::Boolean(on) => if *on { "on" } else { "off" }.to_owned(),
        toml::Value::Integer(number) if kind == Kind::Bytes => match *number {
            number if number >= 1 << 20 && number % (1 << 20) == 0 => format!("{} MiB", number >> 20),
            number if number >= 1 << 10 && number % (1 << 10) == 0 => format!("{} KiB", number >> 10),
            number => format!("{number} B"),
        },
        toml::Value::Integer(number) if kind == Kind::Microseconds => format!("{number} us"),
        toml::Value::Integer(number) => number.to_string(),
        toml::Value::String(text) if text.is_empty() => "none".to_owned(),
        other => other.to_string(),
    }
}

/// Adds the files.
pub fn generate(root: &Path, files: &mut Files) -> Result<()> {
    let text =
        std::fs::read_to_string(root.join("spec/tunables.toml")).context("reading spec/tunables.toml")?;
    let document: Document = toml::from_str(&text).context("spec/tunables.toml")?;
    let mut rooms: BTreeMap<&str, Vec<&Tunable>> = BTreeMap::new();
    for (position, tunable) in document.tunable.iter().enumerate() {
        tunable.check().with_context(|| format!("spec/tunables.toml: {}", tunable.name))?;
        let again = document.tunable[..position].iter().any(|other| other.name == tunable.name);
        ensure!(!again, "spec/tunables.toml: {} stands there twice", tunable.name);
        if tunable.kind.field().is_some() {
            rooms.entry(&tunable.room).or_default().push(tunable);
        }
    }
    files.insert("crates/tunables/src/table.rs".into(), table(&document.tunable)?);
    files.insert("docs/tunables.md".into(), page(&document.tunable)?);
    // The assembly reads its own ones itself.
    rooms.remove("abi");
    for (room, tunables) in &rooms {
        files.insert(format!("crates/{room}/src/tuning.rs").into(), structure(tunables)?);
    }
    files.insert("crates/abi/src/assemble/tuning.rs".into(), assembly(&rooms)?);
    Ok(())
}

fn table(tunables: &[Tunable]) -> Result<String> {
    let mut text = String::from(
        "//! The table. Generated by `cargo xtask codegen` from spec/tunables.toml.\n\n\
         use crate::{Changes, Kind, Scope, Tunable, Value};\nuse std::borrow::Cow;\n\n",
    );
    for (position, tunable) in tunables.iter().enumerate() {
        writeln!(text, "pub const {}: usize = {position};", tunable.constant())?;
    }
    text.push_str("\n/// Every value that can be chosen; the constants above are positions in it.\n");
    writeln!(text, "pub static TABLE: &[Tunable] = &[")?;
    for tunable in tunables {
        let default = match &tunable.default {
            toml::Value::Boolean(on) => format!("Value::Switch({on})"),
            toml::Value::String(default) => format!("Value::Text(Cow::Borrowed({default:?}))"),
            other => format!("Value::Number({})", grouped(other.as_integer().unwrap_or_default())),
        };
        let most = tunable.most.map_or("u64::MAX".to_owned(), |most| grouped(most as i64));
        writeln!(
            text,
            "    Tunable {{\n        name: {:?},\n        variable: {:?},\n        kind: Kind::{},\n        \
             default: {default},\n        least: {},\n        most: {most},\n        room: {:?},\n        \
             measured: {},\n        scope: Scope::{:?},\n        changes: Changes::{:?},\n        what: {:?},\n    }},",
            tunable.name,
            tunable.variable(),
            tunable.kind.name(),
            grouped(tunable.least as i64),
            tunable.room,
            tunable.measured,
            tunable.scope,
            tunable.changes,
            tunable.what,
        )?;
    }
    text.push_str("];\n");
    Ok(text)
}

fn structure(tunables: &[&Tunable]) -> Result<String> {
    let mut text = String::from(
        "//! What can be chosen in this crate. Generated by `cargo xtask codegen` from spec/tunables.toml.\n\n\
         /// Values that decide how fast it is, never what is right. They are read once, when a process starts.\n\
         #[derive(Clone, Copy, Debug, PartialEq, Eq)]\npub struct Tuning {\n",
    );
    for tunable in tunables {
        let field = tunable.kind.field().context("a text has no field")?;
        writeln!(text, "    /// {}\n    pub {}: {field},", tunable.what, tunable.name)?;
    }
    text.push_str("}\n\nimpl Default for Tuning {\n    fn default() -> Tuning {\n        Tuning {\n");
    for tunable in tunables {
        let default = match &tunable.default {
            toml::Value::Integer(number) => grouped(*number),
            other => other.to_string(),
        };
        writeln!(text, "            {}: {default},", tunable.name)?;
    }
    text.push_str("        }\n    }\n}\n");
    Ok(text)
}

fn assembly(rooms: &BTreeMap<&str, Vec<&Tunable>>) -> Result<String> {
    let mut text = String::from(
        "//! From the values in force to what each crate is given. Generated by `cargo xtask codegen` from spec/tunables.toml.\n\n\
         use parnass_tunables::{self as tunables, Settings};\n",
    );
    for (room, tunables) in rooms {
        let room = room.replace('-', "_");
        writeln!(text, "\n/// For parnass-{room}.", room = room.replace('_', "-"))?;
        let name = format!("parnass_{room}::Tuning");
        writeln!(text, "pub fn {room}(settings: &Settings) -> {name} {{\n    {name} {{")?;
        for tunable in tunables {
            let constant = tunable.constant();
            let value = match tunable.kind {
                Kind::Switch => format!("settings.switch(tunables::{constant})"),
                Kind::Bytes => format!("settings.number(tunables::{constant})"),
                _ => format!("settings.number(tunables::{constant}) as u32"),
            };
            writeln!(text, "        {}: {value},", tunable.name)?;
        }
        text.push_str("    }\n}\n");
    }
    Ok(text)
}

fn page(tunables: &[Tunable]) -> Result<String> {
    let mut text = String::from(
        "<!-- Generated by `cargo xtask codegen` from spec/tunables.toml. -->\n\n# Tunables\n\n\
         Nothing has to be set. What can be chosen stands here, once; `parnass info --tunables` shows the values in force and where each came\n\
         from, `parnass info --protocols` what follows from them.\n\n\
         A value is the last one that is given of:\n\n\
         1. the default;\n\
         2. `$XDG_CONFIG_HOME/parnass/tuned.toml` (without that variable `~/.config/parnass/tuned.toml`), which `parnass tune` writes after measuring\n   \
         the machine; another file is named by `PARNASS_TUNED`, and an empty `PARNASS_TUNED` means none. A file from another processor model, another\n   \
         number of processors or another version is ignored, and `parnass info` says so;\n\
         3. `config.toml` in the same place, or the file that `PARNASS_CONFIG` names, by lines `NAME = VALUE` below `[tunables]`;\n\
         4. the environment variable `PARNASS_NAME`, of `mpiexec` or given with `-genv`, `-env` or `-x`;\n\
         5. `mpiexec --tunable NAME=VALUE`, which may be given many times.\n\n\
         `mpiexec` decides, and all ranks have the same values. A program that is started alone has the defaults and its environment. Numbers of bytes\n\
         may have a unit (`64K`, `64KiB`, `1M`). Each is a control variable of MPI_T too (MPI 5.0, section 15.3.6), which a tool may write before MPI_Init,\n\
         and some later. A wrong name or value is an error that says where it stands and what is allowed.\n\n\
         | name | environment variable | type | default | range | read by | what it does |\n|---|---|---|---|---|---|---|\n",
    );
    for tunable in tunables {
        let kind = match tunable.kind {
            Kind::Switch => "on or off",
            Kind::Text => "text",
            Kind::Bytes => "bytes",
            Kind::Microseconds => "microseconds",
            Kind::Count => "count",
        };
        let bound = |number: u64| shown(tunable.kind, &toml::Value::Integer(number as i64));
        let range = match (tunable.kind, tunable.least, tunable.most) {
            (Kind::Switch | Kind::Text, ..) => String::new(),
            (_, least, None) => format!("from {}", bound(least)),
            (_, least, Some(most)) => format!("{} to {}", bound(least), bound(most)),
        };
        let measured = if tunable.measured { " `parnass tune` measures it." } else { "" };
        let running = if tunable.changes == Changes::Running {
            " MPI_T can change it while the program runs."
        } else {
            ""
        };
        writeln!(
            text,
            "| `{}` | `{}` | {kind} | {} | {range} | `{}` | {}{measured}{running} |",
            tunable.name,
            tunable.variable(),
            shown(tunable.kind, &tunable.default),
            tunable.room,
            tunable.what
        )?;
    }
    Ok(text)
}
