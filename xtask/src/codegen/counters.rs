//! What comes from `spec/counters.toml`: the tables of counters and events, and the document.

use super::Files;
use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    category: Vec<Named>,
    counter: Vec<Counter>,
    collective: Vec<Collective>,
    source: Vec<Named>,
    event: Vec<Event>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Named {
    name: String,
    what: String,
}

/// Something that is counted.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Counter {
    name: String,
    class: Class,
    category: String,
    home: Home,
    #[serde(default)]
    bind: Bind,
    verbosity: Verbosity,
    what: String,
}

/// A collective operation and its algorithms: a counter for each.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Collective {
    operation: String,
    algorithms: Vec<String>,
}

/// Something that happens.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Event {
    name: String,
    source: String,
    category: String,
    verbosity: Verbosity,
    what: String,
    elements: Vec<(String, Element)>,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum Class {
    Counter,
    Aggregate,
    Timer,
    Highwatermark,
    Level,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum Home {
    Stripe,
    Lock,
    Program,
    Any,
    Asked,
}

#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum Bind {
    #[default]
    Process,
    Comm,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Verbosity {
    UserBasic,
    UserDetail,
    TunerBasic,
    TunerDetail,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Element {
    Int,
    Unsigned,
    Uint64,
}

fn check_name(name: &str) -> Result<()> {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    ensure!(
        !name.is_empty() && name.bytes().all(plain),
        "'{name}': a name has small letters and underscores"
    );
    Ok(())
}

impl Document {
    /// The rows of collectives become counters behind the others.
    fn expand(&mut self) {
        for Collective { operation, algorithms } in &self.collective {
            for algorithm in algorithms {
                let shown = operation.replace('_', " ");
                let what = match algorithm.strip_prefix("inter_") {
                    Some(algorithm) => {
                        format!("Operations {shown} between two groups, with the algorithm {algorithm}.")
                    }
                    None => format!("Operations {shown} with the algorithm {algorithm}."),
                };
                self.counter.push(Counter {
                    name: format!("{operation}_{algorithm}"),
                    class: Class::Counter,
                    category: "collectives".to_owned(),
                    home: Home::Program,
                    bind: Bind::Process,
                    verbosity: Verbosity::UserDetail,
                    what,
                });
            }
        }
    }

    fn check(&self) -> Result<()> {
        let mut names = BTreeSet::new();
        for counter in &self.counter {
            check_name(&counter.name)?;
            ensure!(names.insert(&counter.name), "there are two counters '{}'", counter.name);
            ensure!(
                self.category.iter().any(|known| known.name == counter.category),
                "{}: there is no category '{}'",
                counter.name,
                counter.category
            );
            ensure!(
                (counter.class == Class::Level) == (counter.home == Home::Asked),
                "{}: a level is asked for, everything else is kept",
                counter.name
            );
            ensure!(counter.what.ends_with('.'), "{}: what it is is told in sentences", counter.name);
        }
        for event in &self.event {
            check_name(&event.name)?;
            let known = self.source.iter().any(|known| known.name == event.source)
                && self.category.iter().any(|known| known.name == event.category);
            ensure!(known, "{}: there is no such source or category", event.name);
            ensure!((1..=6).contains(&event.elements.len()), "{}: one to six elements", event.name);
        }
        ensure!(self.event.len() <= 32, "the events stand in 32 bits");
        Ok(())
    }

    fn category(&self, name: &str) -> usize {
        self.category.iter().position(|known| known.name == name).unwrap_or_default()
    }
}

/// Adds the files.
pub fn generate(root: &Path, files: &mut Files) -> Result<()> {
    let text =
        std::fs::read_to_string(root.join("spec/counters.toml")).context("reading spec/counters.toml")?;
    let mut document: Document = toml::from_str(&text).context("spec/counters.toml")?;
    document.expand();
    document.check().context("spec/counters.toml")?;
    files.insert("crates/counters/src/table.rs".into(), table(&document)?);
    files.insert("docs/counters.md".into(), page(&document)?);
    Ok(())
}

fn table(document: &Document) -> Result<String> {
    let mut text = String::from(
        "//! What is counted, and what is told. Generated by `cargo xtask codegen` from spec/counters.toml.\n\n\
         use crate::{\n    Any, Category, Class, CollectiveCounter, Counter, Element, Event, EventName, Home, Locked, Object, Program, Source,\n    Stripe, Verbosity,\n};\n\n",
    );
    let mut rows = String::new();
    let (mut stripe, mut word) = (0, 0);
    for (index, counter) in document.counter.iter().enumerate() {
        let (home, place) = match counter.home {
            Home::Stripe => ("Stripe", &mut stripe),
            Home::Lock => ("Locked", &mut word),
            Home::Program => ("Program", &mut word),
            Home::Any => ("Any", &mut word),
            Home::Asked => ("", &mut 0),
        };
        let value = if home.is_empty() {
            writeln!(
                text,
                "/// Its position in [`COUNTERS`].\npub const {}: usize = {index};",
                counter.name.to_uppercase()
            )?;
            "Home::Asked".to_owned()
        } else {
            if counter.category != "collectives" {
                writeln!(text, "/// {}", counter.what)?;
                writeln!(text, "pub const {}: {home} = {home}({place});", counter.name.to_uppercase())?;
            }
            *place += 1;
            format!("Home::{home}({home}({}))", *place - 1)
        };
        let bind = match counter.bind {
            Bind::Process => "Process",
            Bind::Comm => "Communicator",
        };
        writeln!(
            rows,
            "    Counter {{\n        name: {:?},\n        class: Class::{:?},\n        category: {},\n        home: {value},\n        \
             object: Object::{bind},\n        verbosity: Verbosity::{:?},\n        what: {:?},\n    }},",
            counter.name,
            counter.class,
            document.category(&counter.category),
            counter.verbosity,
            counter.what,
        )?;
    }
    writeln!(
        text,
        "\n/// How many words the counters take besides the stripes.\npub const WORDS: usize = {word};"
    )?;
    writeln!(
        text,
        "/// How many words of a stripe are in use.\npub const STRIPE_WORDS: usize = {stripe};\n"
    )?;
    writeln!(text, "/// Every counter.\npub const COUNTERS: &[Counter] = &[\n{rows}];\n")?;

    writeln!(
        text,
        "/// The counters of collective operations.\npub const COLLECTIVES: &[CollectiveCounter] = &["
    )?;
    for Collective { operation, algorithms } in &document.collective {
        for algorithm in algorithms {
            let name = format!("{operation}_{algorithm}");
            let row = document.counter.iter().position(|counter| counter.name == name).context("expanded")?;
            let (inter, algorithm) = match algorithm.strip_prefix("inter_") {
                Some(algorithm) => (true, algorithm),
                None => (false, algorithm.as_str()),
            };
            writeln!(
                text,
                "    CollectiveCounter {{ operation: {operation:?}, inter: {inter}, algorithm: {algorithm:?}, row: {row} }},"
            )?;
        }
    }
    text.push_str("];\n\n/// The groups of counters and events.\npub const CATEGORIES: &[Category] = &[\n");
    for Named { name, what } in &document.category {
        writeln!(text, "    Category {{ name: {name:?}, what: {what:?} }},")?;
    }
    text.push_str("];\n\n/// Who tells events.\npub const SOURCES: &[Source] = &[\n");
    for Named { name, what } in &document.source {
        writeln!(text, "    Source {{ name: {name:?}, what: {what:?} }},")?;
    }
    text.push_str("];\n\n/// The events.\npub const EVENTS: &[Event] = &[\n");
    for event in &document.event {
        let source = document.source.iter().position(|known| known.name == event.source).unwrap_or_default();
        writeln!(
            text,
            "    Event {{\n        name: {:?},\n        source: {source},\n        category: {},\n        verbosity: Verbosity::{:?},\n        \
             what: {:?},\n        elements: &[",
            event.name,
            document.category(&event.category),
            event.verbosity,
            event.what
        )?;
        for (name, element) in &event.elements {
            writeln!(text, "            ({name:?}, Element::{element:?}),")?;
        }
        text.push_str("        ],\n    },\n");
    }
    text.push_str("];\n");
    for (index, event) in document.event.iter().enumerate() {
        writeln!(
            text,
            "/// {}\npub const {}: EventName = EventName({index});",
            event.what,
            event.name.to_uppercase()
        )?;
    }
    Ok(text)
}

fn page(document: &Document) -> Result<String> {
    let mut text = String::from(
        "<!-- Generated by `cargo xtask codegen` from spec/counters.toml. -->\n\n# Counters and events\n\n\
         Every process counts what it does, in the memory of its job: always, since it costs a few instructions. Three doors lead there:\n\n\
         * `mpiexec --stats` prints a table of what each rank did when the job ends, and `mpiexec --stats=FILE` writes every counter as JSON;\n\
         * a program or a tool reads them as performance variables of MPI_T (MPI 5.0, chapter 15), under the names below;\n\
         * `parnass info --counters` lists them.\n\n\
         Control variables of MPI_T are the [tunables](tunables.md).\n\n## Counters\n",
    );
    for category in &document.category {
        if category.name == "collectives" {
            continue;
        }
        writeln!(
            text,
            "\n### {}\n\n{}\n\n| name | class | of | what |\n|---|---|---|---|",
            category.name, category.what
        )?;
        for counter in document.counter.iter().filter(|counter| counter.category == category.name) {
            let of = if counter.bind == Bind::Comm { "communicator" } else { "process" };
            writeln!(
                text,
                "| `{}` | {} | {of} | {} |",
                counter.name,
                format!("{:?}", counter.class).to_lowercase(),
                counter.what
            )?;
        }
    }
    text.push_str(
        "\n### collectives\n\nCollective operations begun, by operation and algorithm: a counter `OPERATION_ALGORITHM` for each. What each \
         algorithm does stands in `parnass info`; those that begin with `inter_` are for intercommunicators.\n\n| operation | algorithms |\n|---|---|\n",
    );
    for Collective { operation, algorithms } in &document.collective {
        let algorithms: Vec<String> = algorithms.iter().map(|name| format!("`{name}`")).collect();
        writeln!(text, "| `{operation}` | {} |", algorithms.join(", "))?;
    }
    text.push_str(
        "\nIn MPI_T a counter, an aggregate and a timer count from the moment when their handle is started (`MPI_T_pvar_start`) and can be stopped, \
         reset and written in each handle by itself. A high-water mark begins with the present level when its handle is started or reset. A level can \
         only be read. Counters, aggregates, levels and marks are MPI_UINT64_T-wide numbers of the type MPI_UNSIGNED_LONG_LONG; a timer is an \
         MPI_DOUBLE in seconds.\n\n## Events\n\n\
         Callbacks run in a thread of the program, at a point inside an MPI call where nothing is locked: they may call MPI \
         (MPI_T_CB_REQUIRE_NONE). What happens elsewhere waits for such a point, with its time; up to 4096 events wait, and what comes beyond \
         is counted and told to the handlers of dropped events. While nobody has registered for an event it costs nothing.\n\n\
         | name | source | what | elements |\n|---|---|---|---|\n",
    );
    for event in &document.event {
        let elements: Vec<String> = event
            .elements
            .iter()
            .map(|(name, element)| {
                let kind = match element {
                    Element::Int => "MPI_INT",
                    Element::Unsigned => "MPI_UNSIGNED",
                    Element::Uint64 => "MPI_UINT64_T",
                };
                format!("{name} ({kind})")
            })
            .collect();
        writeln!(text, "| `{}` | {} | {} | {} |", event.name, event.source, event.what, elements.join(", "))?;
    }
    text.push_str("\n| source | what |\n|---|---|\n");
    for Named { name, what } in &document.source {
        writeln!(text, "| {name} | {what} |")?;
    }
    Ok(text)
}
