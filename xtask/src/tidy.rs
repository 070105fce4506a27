//! Rules of the house that the compiler does not know. Each rule is a function that returns its complaints.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};

/// The longest hand-written source file, in lines.
const LONGEST_FILE: usize = 850;

/// Crates in which `unsafe` is allowed, each block with its reason (ARCHITECTURE.md, wall 5).
const UNSAFE_ALLOWED: &[&str] = &[
    "parnass-base",
    "parnass-transport-shm",
    "parnass-transport-ofi",
    "parnass-datatype",
    "parnass-abi",
    "parnass-abi-mpich",
];

/// The walls: which crates of the workspace each crate may name. A crate that is not listed is a new room: list it here.
const MAY_DEPEND_ON: &[(&str, &[&str])] = &[
    ("parnass-base", &[]),
    ("parnass-tunables", &[]),
    ("parnass-counters", &["parnass-base"]),
    ("parnass-datatype", &["parnass-base"]),
    ("parnass-collectives", &[]),
    ("parnass-io", &["parnass-base", "parnass-datatype"]),
    ("parnass-transport", &["parnass-base"]),
    ("parnass-transport-shm", &["parnass-base", "parnass-counters", "parnass-transport", "parnass-portals"]),
    ("parnass-transport-stream", &["parnass-base", "parnass-counters", "parnass-transport"]),
    ("parnass-transport-ofi", &["parnass-base", "parnass-transport", "parnass-transport-stream"]),
    ("parnass-transport-tcp", &["parnass-base", "parnass-transport", "parnass-transport-stream"]),
    ("parnass-transport-hybrid", &["parnass-base", "parnass-transport"]),
    ("parnass-stacks", &["parnass-base"]),
    ("parnass-portals", &["parnass-base", "parnass-counters", "parnass-transport"]),
    ("parnass-bootstrap", &["parnass-base"]),
    (
        "parnass-mpi",
        &[
            "parnass-base",
            "parnass-counters",
            "parnass-datatype",
            "parnass-collectives",
            "parnass-portals",
            "parnass-bootstrap",
            "parnass-io",
        ],
    ),
    (
        "parnass-abi",
        &[
            "parnass-base",
            "parnass-counters",
            "parnass-datatype",
            // The assembly hands over which algorithms the environment asks for.
            "parnass-collectives",
            "parnass-portals",
            "parnass-transport",
            "parnass-transport-shm",
            "parnass-transport-stream",
            "parnass-transport-tcp",
            "parnass-transport-ofi",
            "parnass-transport-hybrid",
            "parnass-bootstrap",
            "parnass-mpi",
            // The assembly fills the structs of values that the others are given.
            "parnass-tunables",
        ],
    ),
    // It finds the standard's library when it is loaded, and shares no code with it.
    ("parnass-abi-mpich", &[]),
    (
        "parnass-launcher",
        &[
            "parnass-base",
            "parnass-bootstrap",
            "parnass-counters",
            "parnass-portals",
            "parnass-stacks",
            "parnass-transport",
            "parnass-transport-shm",
            "parnass-tunables",
        ],
    ),
    (
        "parnass-tools",
        &[
            "parnass-base",
            "parnass-counters",
            "parnass-collectives",
            "parnass-mpi",
            // `parnass tune` runs the library under its own launcher.
            "parnass-abi",
            "parnass-launcher",
            "parnass-bootstrap",
            "parnass-tunables",
        ],
    ),
    ("xtask", &[]),
];

/// One crate of the workspace, as `cargo metadata` describes it.
struct Package {
    name: String,
    folder: PathBuf,
    description: Option<String>,
    dependencies: Vec<String>,
    roots: Vec<PathBuf>,
}

/// Checks every rule in the tree below `root`; the error lists all complaints.
pub fn run(root: &Path) -> anyhow::Result<()> {
    let packages = packages(root)?;
    let sources = sources(root)?;
    let mut complaints = Vec::new();
    complaints.extend(walls(&packages));
    complaints.extend(descriptions(&packages));
    complaints.extend(unsafe_rooms(root, &packages, &sources));
    complaints.extend(concrete_transports(&sources));
    complaints.extend(file_lengths(&sources));
    complaints.extend(leftovers(&sources));
    complaints.extend(foreign_paths(&sources));
    complaints.extend(loom_facade(&sources));
    complaints.extend(no_environment(&sources));
    complaints.extend(layout_version(root, &sources));
    complaints.extend(architecture_names_rooms(root, &packages)?);
    if complaints.is_empty() {
        println!("tidy: {} crates and {} files are in order", packages.len(), sources.len());
        return Ok(());
    }
    let mut text = String::new();
    for complaint in &complaints {
        writeln!(text, "  {complaint}")?;
    }
    bail!("tidy found {} things to put right:\n{text}", complaints.len())
}

/// A tracked text file: its path from the root, and its text.
struct Source {
    path: String,
    text: String,
}

impl Source {
    fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    /// Generated files say so in their first lines.
    fn is_generated(&self) -> bool {
        self.text.lines().take(5).any(|line| {
            let line = line.to_ascii_lowercase();
            line.contains("generated by") || line.contains("generated from")
        })
    }
}

fn packages(root: &Path) -> anyhow::Result<Vec<Package>> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline"])
        .current_dir(root)
        .output()
        .context("cargo metadata")?;
    if !output.status.success() {
        bail!("cargo metadata: {}", String::from_utf8_lossy(&output.stderr));
    }
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    let list = metadata["packages"].as_array().context("cargo metadata has no packages")?;
    let names: BTreeSet<&str> = list.iter().filter_map(|package| package["name"].as_str()).collect();
    let strings = |value: &serde_json::Value| value.as_str().map(str::to_owned);
    let mut packages = Vec::new();
    for package in list {
        let manifest = PathBuf::from(package["manifest_path"].as_str().context("manifest_path")?);
        let dependencies = package["dependencies"].as_array().map(Vec::as_slice).unwrap_or_default();
        let targets = package["targets"].as_array().map(Vec::as_slice).unwrap_or_default();
        packages.push(Package {
            name: strings(&package["name"]).context("name")?,
            folder: manifest.parent().context("manifest folder")?.to_path_buf(),
            description: strings(&package["description"]),
            // What only the tests need may cross a wall: a test drives a room from outside.
            dependencies: dependencies
                .iter()
                .filter(|dependency| dependency["kind"].as_str() != Some("dev"))
                .filter_map(|dependency| strings(&dependency["name"]))
                .filter(|name| names.contains(name.as_str()))
                .collect(),
            roots: targets
                .iter()
                .filter(|target| {
                    let kinds = target["kind"].as_array().map(Vec::as_slice).unwrap_or_default();
                    kinds.iter().any(|kind| matches!(kind.as_str(), Some("lib" | "cdylib" | "rlib" | "bin")))
                })
                .filter_map(|target| strings(&target["src_path"]).map(PathBuf::from))
                .collect(),
        });
    }
    Ok(packages)
}

/// Every text file that git tracks or would track.
fn sources(root: &Path) -> anyhow::Result<Vec<Source>> {
    let output = Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(root)
        .output()
        .context("git ls-files")?;
    if !output.status.success() {
        bail!("git ls-files: {}", String::from_utf8_lossy(&output.stderr));
    }
    let mut sources = Vec::new();
    for path in output.stdout.split(|&byte| byte == 0).filter(|path| !path.is_empty()) {
        let path = String::from_utf8_lossy(path).into_owned();
        // Pictures are not text; a file that was deleted but not yet committed is still listed.
        if let Ok(text) = std::fs::read_to_string(root.join(&path)) {
            sources.push(Source { path, text });
        }
    }
    Ok(sources)
}

fn walls(packages: &[Package]) -> Vec<String> {
    let table: BTreeMap<&str, &[&str]> = MAY_DEPEND_ON.iter().copied().collect();
    let mut complaints = Vec::new();
    for package in packages {
        let Some(allowed) = table.get(package.name.as_str()) else {
            complaints.push(format!("{} is not in the table of walls (MAY_DEPEND_ON)", package.name));
            continue;
        };
        for dependency in &package.dependencies {
            if !allowed.contains(&dependency.as_str()) {
                complaints.push(format!("wall broken: {} depends on {dependency}", package.name));
            }
        }
    }
    complaints
}

fn descriptions(packages: &[Package]) -> Vec<String> {
    packages
        .iter()
        .filter(|package| package.description.as_deref().unwrap_or_default().trim().is_empty())
        .map(|package| format!("{} has no description in its Cargo.toml", package.name))
        .collect()
}

fn unsafe_rooms(root: &Path, packages: &[Package], sources: &[Source]) -> Vec<String> {
    let mut complaints = Vec::new();
    for package in packages {
        if UNSAFE_ALLOWED.contains(&package.name.as_str()) {
            continue;
        }
        for file in &package.roots {
            let relative = file.strip_prefix(root).unwrap_or(file).to_string_lossy().into_owned();
            let forbids = sources
                .iter()
                .any(|source| source.path == relative && source.text.contains("#![forbid(unsafe_code)]"));
            if !forbids {
                complaints.push(format!("{relative}: #![forbid(unsafe_code)] is missing"));
            }
        }
        let folder =
            package.folder.strip_prefix(root).unwrap_or(&package.folder).to_string_lossy().into_owned();
        for source in sources.iter().filter(|source| source.is_rust() && source.path.starts_with(&folder)) {
            if source.text.contains(concat!("allow(", "unsafe_code)")) {
                complaints.push(format!("{}: allows unsafe code outside its rooms", source.path));
            }
        }
    }
    complaints
}

/// Wall 2: only the assembly names a concrete transport (the launcher creates its memory).
fn concrete_transports(sources: &[Source]) -> Vec<String> {
    let at_home = |path: &str| {
        path.starts_with("crates/transport-")
            || path.starts_with("crates/launcher/")
            || path.starts_with("xtask/")
            || path.starts_with("fuzz/")
            || path == "crates/abi/src/assemble.rs"
            || path.starts_with("crates/abi/src/assemble/")
            || path.contains("/tests/")
            || path.contains("/benches/")
            || path.contains("/examples/")
    };
    sources
        .iter()
        .filter(|source| source.is_rust() && !at_home(&source.path))
        .filter(|source| code_lines(&source.text).any(|(_, line)| line.contains("parnass_transport_")))
        .map(|source| {
            format!("{}: names a concrete transport; only crates/abi/src/assemble.rs may", source.path)
        })
        .collect()
}

fn file_lengths(sources: &[Source]) -> Vec<String> {
    let counted = |path: &str| [".rs", ".c", ".py", ".sh"].iter().any(|ending| path.ends_with(ending));
    sources
        .iter()
        .filter(|source| counted(&source.path) && !source.is_generated())
        .map(|source| (source, source.text.lines().count()))
        .filter(|&(_, lines)| lines > LONGEST_FILE)
        .map(|(source, lines)| {
            format!("{}: {lines} lines; look for the seam ({LONGEST_FILE} at most)", source.path)
        })
        .collect()
}

/// Lines of code with their numbers: a line that is only a comment is left out.
fn code_lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines().enumerate().map(|(index, line)| (index + 1, line)).filter(|(_, line)| {
        let line = line.trim_start();
        !line.starts_with("//")
    })
}

fn leftovers(sources: &[Source]) -> Vec<String> {
    // Split so that this file does not complain about itself.
    let notes = [concat!("FIX", "ME"), concat!("TO", "DO"), concat!("XX", "X:"), concat!("HA", "CK:")];
    let calls = [concat!("db", "g!("), concat!("to", "do!("), concat!("unimple", "mented!(")];
    let mut complaints = Vec::new();
    for source in sources.iter().filter(|source| is_code(&source.path)) {
        for (index, line) in source.text.lines().enumerate() {
            for note in notes.iter().filter(|note| contains_word(line, note)) {
                complaints.push(format!("{}:{}: leftover note {note}", source.path, index + 1));
            }
            for call in calls.iter().filter(|call| source.is_rust() && line.contains(*call)) {
                complaints.push(format!("{}:{}: leftover {call})", source.path, index + 1));
            }
        }
    }
    complaints
}

fn is_code(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let endings = [".rs", ".c", ".h", ".cc", ".py", ".sh", ".toml", ".md", ".yml"];
    name == "run" || endings.iter().any(|ending| name.ends_with(ending))
}

/// True when `line` holds `word` with no letter, digit or underscore on either side.
fn contains_word(line: &str, word: &str) -> bool {
    let part = |character: char| character.is_alphanumeric() || character == '_';
    line.match_indices(word).any(|(start, _)| {
        let before = line[..start].chars().next_back();
        let after = line[start + word.len()..].chars().next();
        let runs_on = after.is_some_and(part) && word.chars().all(part);
        !(before.is_some_and(part) || runs_on)
    })
}

/// Paths of one machine and addresses of package hosts have no place in a source tree that others build.
fn foreign_paths(sources: &[Source]) -> Vec<String> {
    let banned = [
        concat!("/ro", "ot/"),
        concat!("/ho", "me/"),
        concat!("/wo", "rk/"),
        concat!("files.python", "hosted.org"),
        concat!("static.crates", ".io"),
        concat!("index.cra", "tes.", "io"),
        concat!("py", "pi.", "org/simple"),
    ];
    let mut complaints = Vec::new();
    for source in sources.iter().filter(|source| is_code(&source.path) || source.path.ends_with(".json")) {
        for (index, line) in source.text.lines().enumerate() {
            for path in banned.iter().filter(|path| line.contains(*path)) {
                complaints.push(format!("{}:{}: names {path}", source.path, index + 1));
            }
        }
    }
    complaints
}

/// Wall 6: atomics come from the facade of `base`, so that loom can take their place.
fn loom_facade(sources: &[Source]) -> Vec<String> {
    let rooms = ["crates/portals/src/", "crates/transport/src/", "crates/transport-"];
    let words = ["std::sync::atomic", "core::sync::atomic"];
    kept_out(sources.iter(), &rooms, &words, "takes atomics past the facade of base")
}

/// Below the ABI everything is told by values: what reads the environment there is a switch that a measurement has left behind.
fn no_environment(sources: &[Source]) -> Vec<String> {
    let rooms = [
        "crates/base/src/",
        "crates/collectives/src/",
        "crates/counters/src/",
        "crates/datatype/src/",
        "crates/io/src/",
        "crates/mpi/src/",
        "crates/portals/src/",
        "crates/transport/src/",
        "crates/transport-",
    ];
    let code = sources.iter().filter(|source| source.path.contains("/src/"));
    kept_out(code, &rooms, &["env::var"], "reads the environment below the ABI")
}

/// Complains of each line of Rust below one of `rooms` that contains one of `words`.
fn kept_out<'a>(
    sources: impl Iterator<Item = &'a Source>,
    rooms: &[&str],
    words: &[&str],
    complaint: &str,
) -> Vec<String> {
    let mut complaints = Vec::new();
    for source in sources.filter(|source| source.is_rust()) {
        if !rooms.iter().any(|room| source.path.starts_with(room)) {
            continue;
        }
        for (number, line) in code_lines(&source.text) {
            if words.iter().any(|word| line.contains(word)) {
                complaints.push(format!("{}:{number}: {complaint}", source.path));
            }
        }
    }
    complaints
}

/// The layout of the shared memory is a versioned document: its number in `docs/wire/` is the one in the code.
fn layout_version(root: &Path, sources: &[Source]) -> Vec<String> {
    let mut complaints = Vec::new();
    for source in sources
        .iter()
        .filter(|source| source.path.starts_with("crates/") && source.path.ends_with("/layout.rs"))
    {
        for (number, line) in code_lines(&source.text) {
            let Some(rest) = line.split("const VERSION:").nth(1) else { continue };
            let version: String =
                rest.split('=').nth(1).unwrap_or_default().chars().filter(char::is_ascii_digit).collect();
            let documented = sources.iter().any(|document| {
                document.path.starts_with("docs/wire/")
                    && document.text.lines().any(|line| {
                        contains_word(&line.to_ascii_lowercase(), &format!("layout version {version}"))
                    })
            });
            if !documented {
                complaints.push(format!(
                    "{}:{number}: no document in {} says \"Layout version {version}\"",
                    source.path,
                    root.join("docs/wire").strip_prefix(root).unwrap_or(Path::new("docs/wire")).display()
                ));
            }
        }
    }
    complaints
}

/// The code map of ARCHITECTURE.md names every crate.
fn architecture_names_rooms(root: &Path, packages: &[Package]) -> anyhow::Result<Vec<String>> {
    let text = std::fs::read_to_string(root.join("ARCHITECTURE.md")).context("ARCHITECTURE.md")?;
    Ok(packages
        .iter()
        .filter_map(|package| {
            package.folder.strip_prefix(root).ok().map(|folder| folder.to_string_lossy().into_owned())
        })
        .filter(|folder| !text.contains(&format!("`{folder}")))
        .map(|folder| format!("ARCHITECTURE.md does not name `{folder}` in its code map"))
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(path: &str, text: &str) -> Source {
        Source { path: path.to_owned(), text: text.to_owned() }
    }

    fn package(name: &str, dependencies: &[&str]) -> Package {
        Package {
            name: name.to_owned(),
            folder: PathBuf::from("crates/x"),
            description: Some("x".to_owned()),
            dependencies: dependencies.iter().map(|name| (*name).to_owned()).collect(),
            roots: Vec::new(),
        }
    }

    #[test]
    fn an_arrow_against_a_wall_is_seen() {
        assert!(walls(&[package("parnass-mpi", &["parnass-base"])]).is_empty());
        assert_eq!(walls(&[package("parnass-portals", &["parnass-mpi"])]).len(), 1);
        assert_eq!(walls(&[package("parnass-new-room", &[])]).len(), 1);
    }

    #[test]
    fn leftovers_are_whole_words() {
        let note = concat!("// FIX", "ME later");
        assert_eq!(leftovers(&[source("a.rs", note)]).len(), 1);
        assert!(leftovers(&[source("a.rs", concat!("let TO", "DOS = 1;"))]).is_empty());
        assert_eq!(leftovers(&[source("a.rs", concat!("to", "do!()"))]).len(), 1);
    }

    #[test]
    fn generated_files_may_be_long() {
        let long = "\n".repeat(LONGEST_FILE + 1);
        assert_eq!(file_lengths(&[source("a.rs", &long)]).len(), 1);
        assert!(
            file_lengths(&[source("a.rs", &format!("// Generated by xtask codegen\n{long}"))]).is_empty()
        );
    }

    #[test]
    fn the_layout_version_must_be_documented() {
        let code = source("crates/x/src/layout.rs", "pub const VERSION: u32 = 12;");
        let old = source("docs/wire/shm.md", "# Layout version 11");
        let new = source("docs/wire/shm.md", "# Layout version 12");
        let code_again = source("crates/x/src/layout.rs", "pub const VERSION: u32 = 12;");
        assert_eq!(layout_version(Path::new("."), &[code, old]).len(), 1);
        assert!(layout_version(Path::new("."), &[code_again, new]).is_empty());
    }

    #[test]
    fn nothing_below_the_abi_reads_the_environment() {
        let read = "let x = std::env::var(\"X\");";
        assert_eq!(no_environment(&[source("crates/portals/src/a.rs", read)]).len(), 1);
        assert_eq!(no_environment(&[source("crates/transport-shm/src/transport/a.rs", read)]).len(), 1);
        assert!(no_environment(&[source("crates/launcher/src/a.rs", read)]).is_empty());
    }

    #[test]
    fn paths_of_one_machine_are_seen() {
        assert_eq!(foreign_paths(&[source("a.md", concat!("see /ho", "me/me/x"))]).len(), 1);
    }
}
