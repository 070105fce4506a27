//! The multi-process tests by table: `tests/programs.toml`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, bail};
use regex::Regex;
use serde::Deserialize;

use super::runner::{self, Outcome};
use super::tally::{Tally, Verdict};

/// The file, as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    test: Vec<Row>,
}

/// A row: one program on one or more numbers of ranks. tests/README.md explains the fields.
#[derive(Deserialize, Clone)]
#[serde(deny_unknown_fields)]
pub struct Row {
    pub name: String,
    /// What the test is there to show.
    pub shows: String,
    /// A source in `tests/programs/` or `tests/standard/`, by its stem.
    #[serde(default)]
    pub program: Option<String>,
    /// Or a script in `tests/scenarios/`, which starts its jobs itself.
    #[serde(default)]
    scenario: Option<String>,
    #[serde(default)]
    pub ranks: Vec<u32>,
    #[serde(default)]
    arguments: Vec<String>,
    /// Placed before the program on mpiexec's command line.
    #[serde(default)]
    wrapper: Vec<String>,
    /// Options for mpiexec.
    #[serde(default)]
    launcher: Vec<String>,
    /// Run the program by itself, without mpiexec.
    #[serde(default)]
    alone: bool,
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
    #[serde(default)]
    stdin: String,
    #[serde(default = "default_limit_s")]
    limit_s: u64,
    #[serde(default)]
    exit: i32,
    #[serde(default)]
    stdout: Vec<String>,
    #[serde(default)]
    stderr: Vec<String>,
    /// Skipped, and said so, on machines with less memory to spare.
    #[serde(default)]
    needs_free_gib: u64,
    /// Skipped, and said so, where the linker does not know this shared library.
    #[serde(default)]
    needs_library: String,
    /// Only with `--full`.
    #[serde(default)]
    pub full: bool,
}

/// Whether the linker knows a shared library.
fn has_library(name: &str) -> bool {
    let listed = Command::new("/sbin/ldconfig").arg("-p").output();
    listed.is_ok_and(|output| String::from_utf8_lossy(&output.stdout).contains(name))
}

fn default_limit_s() -> u64 {
    60
}

/// Where things are.
pub struct Places {
    pub root: PathBuf,
    /// The installation under test.
    pub prefix: PathBuf,
    /// Compiled test programs.
    pub programs: PathBuf,
    /// For temporary folders.
    pub scratch: PathBuf,
    pub full: bool,
}

impl Places {
    pub fn mpiexec(&self) -> PathBuf {
        self.prefix.join("bin/mpiexec")
    }

    /// Replaces `{programs}`, `{prefix}` and `{tests}`.
    fn fill(&self, text: &str) -> String {
        text.replace("{programs}", &self.programs.to_string_lossy())
            .replace("{prefix}", &self.prefix.to_string_lossy())
            .replace("{tests}", &self.root.join("tests").to_string_lossy())
    }
}

/// Reads the table below `root`.
pub fn read(root: &Path) -> anyhow::Result<Vec<Row>> {
    let path = root.join("tests/programs.toml");
    let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let file: File = toml::from_str(&text).context("tests/programs.toml")?;
    let mut seen = BTreeSet::new();
    for row in &file.test {
        if !seen.insert(&row.name) {
            bail!("tests/programs.toml: two rows are named {}", row.name);
        }
        match (&row.program, &row.scenario) {
            (Some(_), None) if row.alone != row.ranks.is_empty() => {
                bail!("tests/programs.toml: {} needs `ranks`, or `alone = true`", row.name)
            }
            (Some(_), None) | (None, Some(_)) => {}
            _ => {
                bail!("tests/programs.toml: {} needs a program or a scenario, and one of them only", row.name)
            }
        }
        for pattern in row.stdout.iter().chain(&row.stderr) {
            Regex::new(&pattern.replace("{ranks}", "1"))
                .with_context(|| format!("tests/programs.toml: {}", row.name))?;
        }
    }
    Ok(file.test)
}

/// The names of the tests that a row stands for: `name/ranks`.
pub fn instances(row: &Row) -> Vec<(String, Option<u32>)> {
    if row.ranks.is_empty() {
        return vec![(row.name.clone(), None)];
    }
    row.ranks.iter().map(|&ranks| (format!("{}/{ranks}", row.name), Some(ranks))).collect()
}

/// Where the sources are.
const FOLDERS: [&str; 2] = ["tests/programs", "tests/standard"];

/// Compiles every program and profiling library with the installed wrapper compilers.
pub fn compile(places: &Places, tally: &mut Tally) -> anyhow::Result<()> {
    std::fs::create_dir_all(&places.programs)?;
    let mut sources: Vec<PathBuf> = Vec::new();
    for folder in FOLDERS {
        sources.extend(std::fs::read_dir(places.root.join(folder))?.flatten().map(|entry| entry.path()));
    }
    // Shared libraries first: programs are linked with them.
    let stem_of = |source: &Path| source.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    sources.sort_by_key(|source| (!stem_of(source).ends_with("_tool"), source.clone()));
    let mut in_c = Vec::new();
    for source in sources {
        let stem = stem_of(&source);
        let warnings = ["-Wall", "-Wextra", "-Werror"].as_slice();
        let (compiler, options) = match source.extension().and_then(|extension| extension.to_str()) {
            Some("c") => ("mpicc", [&["-std=gnu11"], warnings].concat()),
            Some("cc") => ("mpicxx", [&["-std=c++11"], warnings].concat()),
            // Which warnings there are differs from compiler to compiler.
            Some(extension) if FORTRAN.contains(&extension) => ("mpifort", vec![]),
            _ => continue,
        };
        if compiler == "mpifort"
            && let Some(reason) = without_fortran(places)
        {
            tally.add("compile", &stem, Duration::ZERO, Verdict::Skipped(reason));
            continue;
        }
        let mut command = Command::new(places.prefix.join("bin").join(compiler));
        command.args(["-O1", "-g"]).args(options).arg(&source).arg("-o");
        if stem.ends_with("_tool") {
            command.arg(places.programs.join(format!("{stem}.so"))).args(["-shared", "-fPIC"]);
        } else {
            command.arg(places.programs.join(&stem));
        }
        let tool = places.programs.join(format!("{stem}_tool.so"));
        if compiler == "mpifort" && tool.exists() {
            command.arg(&tool).arg(format!("-Wl,-rpath,{}", places.programs.display()));
        }
        // Modules of a program are written where the compiler runs.
        command.arg("-lpthread").current_dir(&places.programs);
        let outcome = runner::run(command, b"", Duration::from_secs(120), &places.scratch)?;
        let verdict = if outcome.code() == 0 {
            Verdict::Passed
        } else {
            Verdict::Failed(format!("{compiler} exited with {}\n{}", outcome.code(), outcome.stderr))
        };
        tally.add("compile", &stem, outcome.elapsed, verdict);
        if matches!(compiler, "mpicc" | "mpicxx") {
            in_c.push(stem);
        }
    }
    let uncalled = uncalled(places, &in_c)?;
    let verdict = if uncalled.is_empty() {
        Verdict::Passed
    } else {
        Verdict::Failed(format!("no program in C calls {}", uncalled.join(", ")))
    };
    tally.add("compile", "every procedure is called by a program in C", Duration::ZERO, verdict);
    Ok(())
}

/// The procedures that none of these compiled programs and libraries refers to, by either name.
fn uncalled(places: &Places, stems: &[String]) -> anyhow::Result<Vec<String>> {
    let mut called = BTreeSet::new();
    for stem in stems {
        let file = if stem.ends_with("_tool") { format!("{stem}.so") } else { stem.clone() };
        let listed = Command::new("nm")
            .args(["-D", "--undefined-only", "-P"])
            .arg(places.programs.join(file))
            .output()?;
        for line in String::from_utf8_lossy(&listed.stdout).lines() {
            let name = line.split([' ', '@']).next().unwrap_or_default();
            called.insert(
                name.strip_prefix("PMPI_").map_or_else(|| name.to_owned(), |rest| format!("MPI_{rest}")),
            );
        }
    }
    let table = std::fs::read_to_string(places.root.join("spec/procedures.jsonl"))?;
    let names =
        table.lines().map(serde_json::from_str::<serde_json::Value>).collect::<Result<Vec<_>, _>>()?;
    let names = names.iter().filter_map(|row| row["name"].as_str());
    Ok(names.filter(|name| !called.contains(*name)).map(str::to_owned).collect())
}

/// The extensions of Fortran programs.
const FORTRAN: [&str; 3] = ["f90", "F90", "f"];

/// Why no Fortran program can be compiled here, if so.
fn without_fortran(places: &Places) -> Option<String> {
    let asked = Command::new(places.prefix.join("bin/mpifort")).arg("--version").output();
    let said = match asked {
        Ok(output) if output.status.success() => return None,
        Ok(output) => String::from_utf8_lossy(&output.stderr).into_owned(),
        Err(error) => error.to_string(),
    };
    Some(said.lines().next().unwrap_or("mpifort does not run").to_owned())
}

/// Whether a row's program is a Fortran one.
fn is_fortran(places: &Places, row: &Row) -> bool {
    let Some(program) = &row.program else { return false };
    let folder = places.root.join("tests/programs");
    FORTRAN.iter().any(|extension| folder.join(format!("{program}.{extension}")).is_file())
}

/// The exit status of a scenario that cannot run here; a line of its output says why, after "skip: ".
const SKIPPED: i32 = 77;

/// Why a scenario could not run here.
pub fn skipped(outcome: &Outcome) -> Option<String> {
    let reason = || outcome.stdout.lines().find_map(|line| line.strip_prefix("skip: "));
    (outcome.code() == SKIPPED && outcome.leftovers.is_empty())
        .then(|| reason().unwrap_or("no reason was given").to_owned())
}

/// Runs one instance of a row.
pub fn run(
    places: &Places,
    row: &Row,
    name: &str,
    ranks: Option<u32>,
    tally: &mut Tally,
) -> anyhow::Result<()> {
    if row.full && !places.full {
        tally.add("programs", name, Duration::ZERO, Verdict::Skipped("runs with --full".to_owned()));
        return Ok(());
    }
    if row.needs_free_gib > free_gib() {
        let reason = format!("needs {} GiB of free memory, there are {}", row.needs_free_gib, free_gib());
        tally.add("programs", name, Duration::ZERO, Verdict::Skipped(reason));
        return Ok(());
    }
    if is_fortran(places, row)
        && let Some(reason) = without_fortran(places)
    {
        tally.add("programs", name, Duration::ZERO, Verdict::Skipped(reason));
        return Ok(());
    }
    if !row.needs_library.is_empty() && !has_library(&row.needs_library) {
        let reason = format!("{} is not installed", row.needs_library);
        tally.add("programs", name, Duration::ZERO, Verdict::Skipped(reason));
        return Ok(());
    }
    let mut command = if let Some(script) = &row.scenario {
        let mut command = Command::new("bash");
        command.args(["-euo", "pipefail"]).arg(places.root.join("tests/scenarios").join(script));
        command
    } else {
        let program = places.programs.join(row.program.as_deref().unwrap_or_default());
        let mut words: Vec<String> = Vec::new();
        if let Some(ranks) = ranks {
            words.push(places.mpiexec().to_string_lossy().into_owned());
            words.extend(["-n".to_owned(), ranks.to_string()]);
            words.extend(row.launcher.iter().map(|word| places.fill(word)));
        }
        words.extend(row.wrapper.iter().map(|word| places.fill(word)));
        words.push(program.to_string_lossy().into_owned());
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]);
        command
    };
    command.args(row.arguments.iter().map(|word| places.fill(word)));
    command.envs(row.environment.iter().map(|(name, value)| (name, places.fill(value))));
    command
        .env("PREFIX", &places.prefix)
        .env("PROGRAMS", &places.programs)
        .env("FULL", if places.full { "1" } else { "" });
    command.current_dir(&places.programs);
    let shown = shown(&command);
    let outcome = runner::run(
        command,
        places.fill(&row.stdin).as_bytes(),
        Duration::from_secs(row.limit_s),
        &places.scratch,
    )?;

    if row.scenario.is_some()
        && let Some(reason) = skipped(&outcome)
    {
        tally.add("programs", name, outcome.elapsed, Verdict::Skipped(reason));
        return Ok(());
    }
    let mut complaints = Vec::new();
    if outcome.timed_out {
        complaints.push(format!("did not end within {} s", row.limit_s));
    } else if outcome.code() != row.exit {
        complaints.push(format!("exit status {}, expected {}", outcome.code(), row.exit));
    }
    let mut looked_for = |patterns: &[String], text: &str, stream: &str| {
        for pattern in patterns {
            // A leading `!` says that the pattern must not be there.
            let (wanted, pattern) = match pattern.strip_prefix('!') {
                Some(pattern) => (false, pattern),
                None => (true, pattern.as_str()),
            };
            let pattern = pattern.replace("{ranks}", &ranks.unwrap_or(1).to_string());
            if Regex::new(&pattern).is_ok_and(|regex| regex.is_match(text)) != wanted {
                let manner = if wanted { "does not match" } else { "matches" };
                complaints.push(format!("{stream} {manner} /{pattern}/"));
            }
        }
    };
    looked_for(&row.stdout, &outcome.stdout, "standard output");
    looked_for(&row.stderr, &outcome.stderr, "standard error");
    complaints.extend(outcome.leftovers.iter().map(|leftover| format!("left behind: {leftover}")));
    let verdict = if complaints.is_empty() {
        Verdict::Passed
    } else {
        Verdict::Failed(format!(
            "{}\n$ {shown}\n{}{}",
            complaints.join("\n"),
            super::tally::excerpt("stdout", &outcome.stdout),
            super::tally::excerpt("stderr", &outcome.stderr),
        ))
    };
    tally.add("programs", name, outcome.elapsed, verdict);
    Ok(())
}

/// The command as one could type it.
fn shown(command: &Command) -> String {
    std::iter::once(command.get_program())
        .chain(command.get_args())
        .map(|word| {
            let word = word.to_string_lossy();
            let plain = |character: char| character.is_ascii_alphanumeric() || "-_./=:,+".contains(character);
            if !word.is_empty() && word.chars().all(plain) {
                word.into_owned()
            } else {
                format!("'{}'", word.replace('\'', r"'\''"))
            }
        })
        .collect::<Vec<_>>()
        .join(" ")
}

/// Memory that could be had without swapping, in GiB.
fn free_gib() -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let kib = line.and_then(|line| line.split_whitespace().next()).and_then(|word| word.parse::<u64>().ok());
    kib.unwrap_or(0) >> 20
}

#[cfg(test)]
mod tests {
    use super::*;

    fn root() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_path_buf()
    }

    #[test]
    fn the_table_is_sound_and_names_files_that_exist() {
        for row in read(&root()).unwrap() {
            assert!(!row.shows.is_empty(), "{} does not say what it shows", row.name);
            if let Some(program) = &row.program {
                let languages = ["c", "cc", "f", "f90", "F90"];
                let is_in = |folder| {
                    let stem = root().join(folder).join(program);
                    languages.iter().any(|language| stem.with_extension(language).exists())
                };
                assert!(FOLDERS.into_iter().any(is_in), "{program}");
            }
            if let Some(scenario) = &row.scenario {
                assert!(root().join("tests/scenarios").join(scenario).exists(), "{scenario}");
            }
        }
    }

    #[test]
    fn the_table_of_chapters_names_programs_that_exist_and_all_that_are_there() {
        let folder = root().join("tests/standard");
        let text = std::fs::read_to_string(folder.join("README.md")).unwrap();
        let rows: Vec<&str> = text.lines().filter(|line| line.starts_with("| ")).collect();
        let named: BTreeSet<&str> = rows.iter().flat_map(|row| row.split('`').skip(1).step_by(2)).collect();
        for name in &named {
            let stands_in = |folder: &str| root().join(folder).join(format!("{name}.c")).exists();
            // `crates/abi` is no program.
            assert!(name.contains('/') || FOLDERS.into_iter().any(stands_in), "{name}");
        }
        for entry in std::fs::read_dir(folder).unwrap().flatten() {
            let file = entry.path();
            let stem = file.file_stem().unwrap().to_string_lossy().into_owned();
            assert!(file.extension().is_none_or(|it| it != "c") || named.contains(stem.as_str()), "{stem}");
        }
        let rows_of_table = read(&root()).unwrap();
        for name in named.iter().filter(|name| name.starts_with("chapter_")) {
            assert!(
                rows_of_table.iter().any(|row| row.program.as_deref() == Some(name)),
                "{name} is not run"
            );
        }
    }

    #[test]
    fn a_command_is_shown_as_one_would_type_it() {
        let mut command = Command::new("sh");
        command.args(["-c", "echo it's"]);
        assert_eq!(shown(&command), r"sh -c 'echo it'\''s'");
    }
}
