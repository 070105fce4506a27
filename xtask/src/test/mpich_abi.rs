//! Programs of MPICH's ABI on our libmpi.so.12: MPICH's own header against our data, and the test programs compiled by MPICH's
//! own `mpicc`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use serde::Deserialize;

use super::runner;
use super::table::{self, Places, Row};
use super::tally::{Tally, Verdict, excerpt};

/// Those of this file that are not rows of the table of programs.
pub const NAMES: [&str; 6] = [
    "mpich-abi-constants",
    "mpich-abi-symbols",
    "mpich-abi-edge",
    "mpich-abi-interposition",
    "mpich-abi-run-path",
    "mpich-abi-other-names",
];

/// More ranks than this are not tried.
const MOST_RANKS: u32 = 4;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Selection {
    excluded: Vec<Excluded>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Excluded {
    /// What the name of the row begins with.
    row: String,
    reason: String,
}

impl Selection {
    fn read(root: &Path) -> anyhow::Result<Selection> {
        let text = std::fs::read_to_string(root.join("tests/clients/mpich_abi.toml"))?;
        toml::from_str(&text).context("tests/clients/mpich_abi.toml")
    }
}

/// The rows of the table that run, each on one number of ranks, with the names of their tests.
fn rows(root: &Path) -> anyhow::Result<Vec<(String, Row, Option<u32>)>> {
    let selection = Selection::read(root)?;
    let mut chosen = Vec::new();
    for row in table::read(root)? {
        let Some(program) = row.program.clone() else { continue };
        let is_c = root.join("tests/programs").join(&program).with_extension("c").exists();
        if row.full || !is_c || selection.excluded.iter().any(|one| row.name.starts_with(&one.row)) {
            continue;
        }
        let ranks = row.ranks.iter().copied().filter(|&ranks| ranks <= MOST_RANKS).max();
        if ranks.is_none() && !row.ranks.is_empty() {
            continue;
        }
        let name = match ranks {
            Some(ranks) => format!("mpich-abi/{}/{ranks}", row.name),
            None => format!("mpich-abi/{}", row.name),
        };
        chosen.push((name, row, ranks));
    }
    Ok(chosen)
}

/// The names of all tests here.
pub fn names(root: &Path) -> anyhow::Result<Vec<String>> {
    let mut names: Vec<String> = NAMES.map(str::to_owned).into();
    names.extend(rows(root)?.into_iter().map(|(name, ..)| name));
    Ok(names)
}

/// Runs those that are wanted; `mpich` is the environment in which MPICH is installed.
pub fn run(
    places: &Places,
    mpich: &Path,
    wanted: &dyn Fn(&str) -> bool,
    tally: &mut Tally,
) -> anyhow::Result<()> {
    let folder = places.scratch.join("mpich-programs");
    std::fs::create_dir_all(&folder)?;
    let mut judge = |name: &str, check: &dyn Fn() -> anyhow::Result<()>| {
        if !wanted(name) {
            return;
        }
        let start = std::time::Instant::now();
        let verdict = match check() {
            Ok(()) => Verdict::Passed,
            Err(error) => Verdict::Failed(format!("{error:#}")),
        };
        tally.add("clients", name, start.elapsed(), verdict);
    };
    judge(NAMES[0], &|| constants(places, mpich, &folder));
    judge(NAMES[1], &|| symbols(places, mpich));
    judge(NAMES[2], &|| edge(places, mpich, &folder));
    judge(NAMES[3], &|| interposition(places, mpich, &folder));
    judge(NAMES[4], &|| run_path(places, mpich, &folder));
    judge(NAMES[5], &|| other_names(places, mpich, &folder));

    let own = Places {
        root: places.root.clone(),
        prefix: places.prefix.clone(),
        programs: folder.clone(),
        scratch: places.scratch.clone(),
        full: places.full,
    };
    for excluded in Selection::read(&places.root)?.excluded {
        println!("  mpich-abi: without {} ({})", excluded.row, excluded.reason);
    }
    let mut compiled: BTreeMap<String, Option<String>> = BTreeMap::new();
    for (name, mut row, ranks) in rows(&places.root)? {
        if !wanted(&name) {
            continue;
        }
        let stem = row.program.clone().unwrap_or_default();
        // A row may preload the tool.
        for program in ["counting_tool", stem.as_str()] {
            if !compiled.contains_key(program) {
                let source = places.root.join("tests/programs").join(program).with_extension("c");
                let failed = compile(places, mpich, &source, &folder).err().map(|error| format!("{error:#}"));
                compiled.insert(program.to_owned(), failed);
            }
        }
        if let Some(Some(reason)) = compiled.get(&stem) {
            tally.add("clients", &name, Duration::ZERO, Verdict::Failed(reason.clone()));
            continue;
        }
        if ranks.is_none() {
            row.environment.insert("LD_LIBRARY_PATH".to_owned(), "{prefix}/lib".to_owned());
        }
        table::run(&own, &row, &name, ranks, tally)?;
    }
    Ok(())
}

/// Compiles a program, or a library if its name ends so, with MPICH's `mpicc` into the folder.
fn compile(places: &Places, mpich: &Path, source: &Path, folder: &Path) -> anyhow::Result<PathBuf> {
    let stem = source.file_stem().context("a source has a name")?.to_string_lossy().into_owned();
    let is_library = stem.ends_with("_tool");
    let target = folder.join(if is_library { format!("{stem}.so") } else { stem });
    let mut command = with_path(mpich, Command::new(mpich.join("bin/mpicc")));
    command.args(["-std=gnu11", "-O1", "-g"]).arg(source).arg("-o").arg(&target);
    if is_library {
        command.args(["-shared", "-fPIC"]);
    }
    let outcome = runner::run(command, b"", Duration::from_secs(120), &places.scratch)?;
    ensure!(outcome.code() == 0, "mpicc: {}\n{}", source.display(), outcome.stderr);
    Ok(target)
}

fn with_path(mpich: &Path, mut command: Command) -> Command {
    let mut path = mpich.join("bin").into_os_string();
    path.push(":");
    path.push(std::env::var_os("PATH").unwrap_or_default());
    command.env("PATH", path);
    command
}

/// Runs a command that must end with 0, say `wanted` and leave nothing; its output.
fn succeed(places: &Places, command: Command, wanted: &str) -> anyhow::Result<String> {
    let outcome = runner::run(command, b"", Duration::from_secs(60), &places.scratch)?;
    if outcome.code() != 0 || !outcome.stdout.contains(wanted) || !outcome.leftovers.is_empty() {
        bail!(
            "exit status {}, wanted \"{wanted}\", left behind: {:?}\n{}{}",
            outcome.code(),
            outcome.leftovers,
            excerpt("stdout", &outcome.stdout),
            excerpt("stderr", &outcome.stderr)
        );
    }
    Ok(outcome.stdout)
}

/// Names of MPICH's header that are no constants, or that stand for symbols of the library.
const NO_CONSTANTS: [&str; 14] = [
    "MPI_INCLUDED",
    "MPI_FILE_DEFINED",
    "MPI_AINT_FMT_DEC_SPEC",
    "MPI_AINT_FMT_HEX_SPEC",
    "MPI_DUP_FN",
    "MPI_COMM_DUP_FN",
    "MPI_TYPE_DUP_FN",
    "MPI_WIN_DUP_FN",
    "MPI_UNWEIGHTED",
    "MPI_WEIGHTS_EMPTY",
    "MPI_F_STATUS_IGNORE",
    "MPI_F_STATUSES_IGNORE",
    "MPI_T_PVAR_ALL_HANDLES",
    "MPI_ABI",
];

/// Every constant of spec/mpich-abi.csv has the value that MPICH's header gives it, and no constant of the header is missing there.
fn constants(places: &Places, mpich: &Path, folder: &Path) -> anyhow::Result<()> {
    let table = std::fs::read_to_string(places.root.join("spec/mpich-abi.csv"))?;
    let mut named = BTreeSet::new();
    let mut text = String::from(
        "#include <mpi.h>\n#include <stddef.h>\n#include <stdint.h>\n#include <stdio.h>\nint main(void) {\n    int bad = 0;\n",
    );
    for line in table.lines().skip(1) {
        let fields: Vec<&str> = line.split(',').collect();
        let [_, name, value, kind] = fields[..] else { bail!("spec/mpich-abi.csv: {line}") };
        let value = match (kind, value.strip_prefix("0x")) {
            (_, Some(_)) => format!("(int){value}"),
            _ => value.to_owned(),
        };
        writeln!(
            text,
            "    if ((long long)(intptr_t)({name}) != (long long)(intptr_t)({value})) bad += printf(\"{name} is %lld\\n\", (long long)(intptr_t)({name}));"
        )?;
        named.insert(name);
    }
    text.push_str(
        "    if (sizeof(MPI_Status) != 20 || offsetof(MPI_Status, MPI_ERROR) != 16 || sizeof(MPI_Count) != 8) bad += printf(\"layout\\n\");\n    if (!bad) printf(\"all equal\\n\");\n    return bad != 0;\n}\n",
    );
    let source = folder.join("mpich_constants.c");
    std::fs::write(&source, text)?;
    let program = compile(places, mpich, &source, folder)?;
    // The program needs no library but to be loaded.
    let mut command = Command::new(program);
    command.env("LD_LIBRARY_PATH", places.prefix.join("lib"));
    succeed(places, command, "all equal")?;

    let header = std::fs::read_to_string(mpich.join("include/mpi.h"))?;
    let defined = regex::Regex::new(
        r"(?m)^#\s*define\s+(MPI_[A-Z0-9_]+)\b(?:[^(]|$)|^\s+(MPI_[A-Z0-9_]+)\s*(?:=|,|$)",
    )?;
    let lacking: BTreeSet<&str> = defined
        .captures_iter(&header)
        .filter_map(|found| found.get(1).or(found.get(2)))
        .map(|name| name.as_str())
        .filter(|name| !named.contains(name) && !NO_CONSTANTS.contains(name))
        .collect();
    ensure!(lacking.is_empty(), "not in spec/mpich-abi.csv: {lacking:?}");
    Ok(())
}

fn exported(library: &Path) -> anyhow::Result<BTreeSet<String>> {
    let output = Command::new("nm").args(["-D", "--defined-only", "-P"]).arg(library).output()?;
    ensure!(output.status.success(), "nm {}", library.display());
    let text = String::from_utf8_lossy(&output.stdout);
    Ok(text.lines().filter_map(|line| line.split(' ').next()).map(str::to_owned).collect())
}

/// What MPICH's library exports and ours does not is exactly what docs/mpich-abi.md says.
fn symbols(places: &Places, mpich: &Path) -> anyhow::Result<()> {
    let ours = exported(&places.prefix.join("lib/libmpi.so.12"))?;
    let theirs = exported(&mpich.join("lib/libmpi.so.12"))?;
    let page = std::fs::read_to_string(places.root.join("docs/mpich-abi.md"))?;
    let (_, list) =
        page.split_once("## What is not there").context("docs/mpich-abi.md lists what is not there")?;
    let told: BTreeSet<&str> = list.split('`').skip(1).step_by(2).collect();
    let is_told = |name: &str| {
        told.iter().any(|told| match told.strip_suffix('*') {
            Some(beginning) => name.starts_with(beginning),
            None => name == *told,
        })
    };
    let lacking: Vec<&String> = theirs
        .iter()
        .filter(|name| !ours.contains(*name))
        .filter(|name| !is_told(name) && !is_told(name.strip_prefix('P').unwrap_or(name)))
        .collect();
    ensure!(lacking.is_empty(), "neither exported nor in docs/mpich-abi.md: {lacking:?}");
    let wrong: Vec<&&str> = told.iter().filter(|told| ours.contains(**told)).collect();
    ensure!(wrong.is_empty(), "docs/mpich-abi.md says that these are not there: {wrong:?}");
    Ok(())
}

/// The program that tests what only this ABI has.
fn edge(places: &Places, mpich: &Path, folder: &Path) -> anyhow::Result<()> {
    let program = compile(places, mpich, &places.root.join("tests/clients/mpich_abi.c"), folder)?;
    for ranks in ["1", "2", "4"] {
        let mut command = Command::new(places.mpiexec());
        command.args(["-n", ranks]).arg(&program).arg(folder);
        succeed(places, command, "mpich_abi: ok")?;
    }
    Ok(())
}

/// A program's own MPI_Send, which calls PMPI_Send, and a tool that is loaded before the program.
fn interposition(places: &Places, mpich: &Path, folder: &Path) -> anyhow::Result<()> {
    let sources = places.root.join("crates/abi/tests/programs");
    let folder = &folder.join("interposition");
    std::fs::create_dir_all(folder)?;
    let own = compile(places, mpich, &sources.join("own_send.c"), folder)?;
    let plain = compile(places, mpich, &sources.join("plain.c"), folder)?;
    let tool = compile(places, mpich, &sources.join("counting_tool.c"), folder)?;
    let alone = |program: &Path| {
        let mut command = Command::new(program);
        command.env("LD_LIBRARY_PATH", places.prefix.join("lib"));
        command
    };
    succeed(places, alone(&own), "sends 1 received 17")?;
    let mut command = alone(&plain);
    command.env("LD_PRELOAD", tool);
    succeed(places, command, "tool: 3 sends")?;
    Ok(())
}

/// A program whose run path finds MPICH's library before LD_LIBRARY_PATH is looked at: `mpiexec --mpich-abi` runs it on ours.
fn run_path(places: &Places, mpich: &Path, folder: &Path) -> anyhow::Result<()> {
    let program = folder.join("fixed_run_path");
    let mut command = with_path(mpich, Command::new(mpich.join("bin/mpicc")));
    command.arg(places.root.join("tests/programs/foreign.c")).arg("-o").arg(&program);
    command.arg(format!("-Wl,--disable-new-dtags,-rpath,{}", mpich.join("lib").display()));
    succeed(places, command, "")?;
    let mut command = Command::new(places.mpiexec());
    command.args(["--mpich-abi", "-n", "2"]).arg(&program);
    succeed(places, command, "library: Parnass")?;
    Ok(())
}

/// A program that asks for the library by the names that Debian and Intel have for it; the loader loads it once.
fn other_names(places: &Places, mpich: &Path, folder: &Path) -> anyhow::Result<()> {
    let folder = &folder.join("other-names");
    std::fs::create_dir_all(folder)?;
    let object = folder.join("foreign.o");
    let mut command = Command::new("cc");
    command.arg(format!("-I{}", mpich.join("include").display())).arg("-c");
    command.arg(places.root.join("tests/programs/foreign.c")).arg("-o").arg(&object);
    succeed(places, command, "")?;
    let listed = Command::new("nm").args(["-u", "-P"]).arg(&object).output()?;
    let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
    let wanted =
        listed.lines().filter_map(|line| line.split(' ').next()).filter(|name| name.starts_with("MPI_"));
    let source = folder.join("stub.c");
    std::fs::write(
        &source,
        wanted.map(|name| format!("int {name}(void) {{ return 0; }}\n")).collect::<String>(),
    )?;
    for name in ["libmpich.so.12", "libmpifort.so.12"] {
        // Stands for the other vendor's library when the program is linked.
        let mut command = Command::new("cc");
        command.args(["-shared", "-fPIC", "-o"]).arg(folder.join(name)).arg(format!("-Wl,-soname,{name}"));
        command.arg(&source);
        succeed(places, command, "")?;
    }
    let program = folder.join("program");
    let mut command = Command::new("cc");
    command.arg(&object).arg("-o").arg(&program).arg(format!("-L{}", folder.display()));
    command.args(["-Wl,--no-as-needed", "-l:libmpifort.so.12", "-l:libmpich.so.12"]);
    succeed(places, command, "")?;
    let mut command = Command::new(places.mpiexec());
    command.args(["-n", "2"]).arg(&program);
    succeed(places, command, "library: Parnass")?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_exclusion_has_its_reason_and_its_row() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let selection = Selection::read(root).unwrap();
        let rows = table::read(root).unwrap();
        for excluded in selection.excluded {
            assert!(excluded.reason.len() > 20, "{} needs a reason", excluded.row);
            assert!(rows.iter().any(|row| row.name.starts_with(&excluded.row)), "no row {}", excluded.row);
        }
    }
}
