//! README's figures, from the result files of runs of `parnass bench`.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use anyhow::{Context, Result, bail};
use serde::Deserialize;
use serde_json::Value;

/// Where the last result of a machine is committed, by a word of what the file says about its processor.
pub const RESULTS: &[(&str, &str)] = &[
    ("16 cores of Intel", "docs/bench-result-intel-16-cores.json"),
    ("Intel", "docs/bench-result-intel.json"),
    ("AMD", "docs/bench-result-amd.json"),
    ("", "docs/bench-result-other.json"),
];
const BEGIN: &str =
    "<!-- The figures from here on are generated from docs/bench-result-*.json by `cargo xtask codegen`. -->";
const END: &str = "<!-- Here they end. -->";
const OURS: &str = "parnass";
/// The ending of a peer's name when it runs with the settings that suit it best.
const BEST: &str = "-best";

/// What the section needs of the file that `crates/tools/src/bench/results.rs` writes.
#[derive(Deserialize)]
struct Report {
    command: String,
    machine: String,
    date: String,
    rounds: u32,
    libraries: Vec<Library>,
    rows: Vec<Row>,
}

#[derive(Deserialize)]
struct Library {
    name: String,
    version: String,
}

#[derive(Deserialize)]
struct Row {
    name: String,
    bytes: u64,
    unit: String,
    better: Better,
    medians: BTreeMap<String, f64>,
}

#[derive(Clone, Copy, Deserialize, PartialEq)]
#[serde(rename_all = "lowercase")]
enum Better {
    Less,
    More,
}

/// What the section shows: the value's name, the size, and the words.
const SHOWN: &[(&str, u64, &str)] = &[
    ("half-round-trip", 8, "half round trip, 8 B"),
    ("half-round-trip-fresh", 1024, "half round trip, 1 KiB, other memory each time"),
    ("half-round-trip-fresh", 4096, "half round trip, 4 KiB, other memory each time"),
    ("message-rate", 8, "message rate, 8 B, one way"),
    ("message-rate-both-ways", 8, "message rate, 8 B, both ways"),
    ("stream", 64, "messages of 64 B one after the other, each"),
    ("stream", 16384, "messages of 16 KiB one after the other, each"),
    ("bandwidth", 65536, "bandwidth, 64 KiB"),
    ("bandwidth", 1 << 20, "bandwidth, 1 MiB"),
    ("bandwidth", 64 << 20, "bandwidth, 64 MiB"),
    ("exchange", 1024, "both send and receive 1 KiB, MPI_Sendrecv"),
    ("exchange-nonblocking", 1024, "both send and receive 1 KiB, nonblocking"),
    ("exchange-nonblocking", 65536, "both send and receive 64 KiB, nonblocking"),
    ("exchange-nonblocking", 1 << 20, "both send and receive 1 MiB, nonblocking"),
    ("exchange-send-first", 262_144, "both send 256 KiB, MPI_Isend, and then receive, MPI_Recv"),
    ("exchange-replace", 16384, "both send and receive 16 KiB, MPI_Sendrecv_replace"),
    ("many-exchanged", 1024, "32 messages of 1 KiB each way at once"),
    ("many-exchanged-one-by-one", 8, "32 messages of 8 B each way at once, MPI_Waitany"),
    ("probed", 1024, "half round trip, 1 KiB, probed first"),
    ("alltoallv-2-ranks", 1024, "alltoallv of 1 KiB, 2 ranks"),
    ("gatherv-2-ranks", 1024, "gatherv of 1 KiB, 2 ranks"),
    ("exchange-anew", 1 << 20, "both send and receive 1 MiB in memory allocated anew"),
    ("ibcast-2-ranks", 400, "MPI_Ibcast of 400 B and MPI_Wait, 2 ranks"),
    ("iallreduce-2-ranks", 400, "MPI_Iallreduce of 400 B and MPI_Wait, 2 ranks"),
    ("bcast-changing-2-ranks", 404, "broadcasts of 8 to 800 B, another length each time"),
    ("alltoallv-changing-2-ranks", 404, "alltoallvs of 8 to 800 B, another length each time"),
    ("program-gradients-2-ranks", 0, "2 ranks: a step of conjugate gradients"),
    ("program-block-2-ranks", 0, "2 ranks: a step of a stencil in a block"),
    ("program-elimination-2-ranks", 0, "2 ranks: Gaussian elimination"),
    ("program-gradients-4-ranks", 0, "4 ranks: a step of conjugate gradients"),
    ("program-block-4-ranks", 0, "4 ranks: a step of a stencil in a block"),
    ("program-elimination-4-ranks", 0, "4 ranks: Gaussian elimination"),
    ("put-both-created", 8, "both put 8 B and flush, windows on their own memory"),
    ("put-fence-created", 1024, "both put 1 KiB, and a fence"),
    ("put-lent", 8, "put of 8 B and flush, window on memory of MPI_Alloc_mem"),
    ("create-window", 65536, "window of 64 KiB created and freed"),
    ("allocate-window", 65536, "window of 64 KiB allocated and freed"),
    ("overlap-receiver-computes", 1_000_000, "transfer of 1 MB hidden while the receiver computes"),
    ("overlap-receiver-computes-late", 1_000_000, "the same, the receive posted late"),
    ("overlap-sender-computes", 1_000_000, "the same, the sender computes"),
    ("together-receiver-computes", 1_000_000, "transfer of 1 MB and 200 us of work, the receiver computes"),
    ("together-receiver-computes-late", 1_000_000, "the same, the receive posted late"),
    ("together-sender-computes", 1_000_000, "the same, the sender computes"),
    ("step-exchange", 100_000, "exchange of 100 KB beside 100 us of work of both"),
    ("step-exchange", 1_000_000, "exchange of 1 MB beside 1 ms of work of both"),
    ("step-iallreduce", 1_000_000, "MPI_Iallreduce of 1 MB beside 1 ms of work of both"),
    ("match-posted", 8, "half round trip, 10,000 other receives posted"),
    ("match-unexpected", 8, "half round trip, 10,000 unexpected messages queued"),
    ("flood-100000-drain", 8, "one of 100,000 unexpected messages received, last first"),
    ("barrier-2-ranks", 0, "barrier, 2 ranks"),
    ("allreduce-2-ranks", 8, "allreduce of 8 B, 2 ranks"),
    ("allreduce-2-ranks", 1 << 20, "allreduce of 1 MiB, 2 ranks"),
    ("alltoall-2-ranks", 1 << 20, "alltoall of 1 MiB, 2 ranks"),
    ("datatype-vector", 1 << 20, "blocks with gaps by datatype, 1 MiB"),
    ("datatype-column", 131_072, "matrix column by datatype, 128 KiB"),
    ("thread-half-round-trip", 8, "half round trip, 8 B, one thread under MPI_THREAD_MULTIPLE"),
    ("thread-exchange-rate", 8, "exchanges of two threads a rank, one at a time"),
    ("thread-exchange-rate-windows", 8, "exchanges of two threads a rank"),
    ("allreduce-16-ranks", 8, "16 ranks: allreduce of 8 B"),
    ("alltoall-16-ranks", 8, "16 ranks: alltoall of 8 B"),
    ("bcast-16-ranks", 1 << 20, "16 ranks: broadcast of 1 MiB"),
    ("allreduce-16-ranks", 65536, "16 ranks: allreduce of 64 KiB"),
    ("allreduce-16-ranks", 1 << 20, "16 ranks: allreduce of 1 MiB"),
    ("alltoall-16-ranks", 65536, "16 ranks: alltoall of 64 KiB"),
    ("alltoall-16-ranks", 1 << 20, "16 ranks: alltoall of 1 MiB"),
    ("reduce-scatter-16-ranks", 1 << 20, "16 ranks: reduce-scatter of 1 MiB"),
    ("exchange-64-ranks", 8, "64 ranks: all pairs exchange 8 B"),
    ("half-round-trip-among-62-waiting", 8, "64 ranks: half round trip of two while 62 wait"),
    ("slow-down-by-63-waiting", 0, "64 ranks: slow-down of one that computes while 63 wait"),
    ("start-to-end-1-ranks", 0, "start to end, 1 rank"),
    ("start-to-end-64-ranks", 0, "start to end, 64 ranks"),
    ("memory-64-ranks", 0, "memory of 64 ranks after start"),
];

impl Row {
    fn better_of(&self, left: f64, right: f64) -> f64 {
        if self.better == Better::Less { left.min(right) } else { left.max(right) }
    }

    /// A peer's median: at its default or at its best, whichever is better.
    fn of(&self, library: &str) -> Option<f64> {
        let values = [library.to_owned(), format!("{library}{BEST}")];
        values
            .iter()
            .filter_map(|name| self.medians.get(name).copied())
            .reduce(|left, right| self.better_of(left, right))
    }

    /// Ours, the best peer's, and whether ours is at least as good.
    fn compared(&self, peers: &[&str]) -> Option<(f64, f64, bool)> {
        let ours = self.of(OURS)?;
        let best = peers
            .iter()
            .filter_map(|peer| self.of(peer))
            .reduce(|left, right| self.better_of(left, right))?;
        Some((ours, best, self.better_of(ours, best) == ours))
    }
}

/// Where a result file, whose text this is, is committed.
pub fn file_of(result: &str) -> Result<&'static str> {
    let report: Report = serde_json::from_str(result).context("no result file")?;
    let (_, file) =
        RESULTS.iter().find(|(word, _)| report.machine.contains(word)).expect("the last word is in each");
    Ok(file)
}

/// A result file with the values of a later run on that sort of processor, of single yardsticks, in place of its own.
pub fn with_later(before: &str, later: &str) -> Result<String> {
    let mut file: Value = serde_json::from_str(before).context("no result file")?;
    let later: Value = serde_json::from_str(later).context("no result file")?;
    let (Some(rows), Some(new)) = (file["rows"].as_array_mut(), later["rows"].as_array()) else {
        bail!("a result file without rows");
    };
    for row in new {
        match rows.iter_mut().find(|old| old["name"] == row["name"] && old["bytes"] == row["bytes"]) {
            Some(old) => old.clone_from(row),
            None => rows.push(row.clone()),
        }
    }
    Ok(serde_json::to_string_pretty(&file)? + "\n")
}

/// README with its section made anew from result files: the path and the text of each.
pub fn readme(readme: &str, results: &[(&str, String)]) -> Result<String> {
    let mut sections = Vec::new();
    for (file, text) in results {
        let report = serde_json::from_str(text).with_context(|| format!("{file}: no result file"))?;
        sections.push(section(&report, file));
    }
    let (Some(begin), Some(end)) = (readme.find(BEGIN), readme.find(END)) else {
        bail!("README.md: the two comments around the generated figures are not there");
    };
    let before = readme.get(..begin + BEGIN.len()).unwrap_or_default();
    let after = readme.get(end..).unwrap_or_default();
    Ok(format!("{before}\n\n{}\n{after}", sections.join("\n")))
}

fn section(report: &Report, file: &str) -> String {
    let peers: Vec<&str> = report
        .libraries
        .iter()
        .map(|library| library.name.as_str())
        .filter(|name| *name != OURS && !name.ends_with(BEST))
        .collect();
    let with_best = report.libraries.iter().any(|library| library.name.ends_with(BEST));
    let peer_settings = if with_best {
        "each peer at its default and at the settings that are known to suit it best, the better of the two"
    } else {
        "each peer at its default"
    };
    let values = match report.rounds {
        1 => "Values of one interleaved round".to_owned(),
        rounds => format!("Medians of {rounds} interleaved rounds"),
    };
    let mut out = format!(
        "{values} on {}, {}; {peer_settings}. `{}` repeats it.\n\n",
        report.machine, report.date, report.command
    );
    out += "| | Parnass |";
    for peer in &peers {
        let library = report.libraries.iter().find(|library| library.name == *peer);
        let _ = write!(out, " {} {} |", called(peer), library.map_or("", |library| &library.version));
    }
    let _ = writeln!(out, " ours / best |\n{}|", "|---".repeat(peers.len() + 3));
    for (name, bytes, words) in SHOWN {
        let Some(row) = report.rows.iter().find(|row| row.name == *name && row.bytes == *bytes) else {
            continue;
        };
        let _ = write!(out, "| {words} |");
        for library in std::iter::once(&OURS).chain(&peers) {
            let cell = row.of(library).map_or(String::new(), |value| with_unit(value, &row.unit));
            let _ = write!(out, " {cell} |");
        }
        let ratio = row.compared(&peers).map_or(String::new(), |(ours, best, ahead)| {
            let mark = if ahead { "**" } else { "" };
            if best == 0.0 { String::new() } else { format!("{mark}{:.2}{mark}", ours / best) }
        });
        let _ = writeln!(out, " {ratio} |");
    }
    let compared: Vec<bool> =
        report.rows.iter().filter_map(|row| row.compared(&peers)).map(|(_, _, ahead)| ahead).collect();
    let ahead = compared.iter().filter(|ahead| **ahead).count();
    let _ = writeln!(
        out,
        "\nBold: ahead of every peer, or level. That is so in {ahead} of all {} values; [{file}]({file}) has them.",
        compared.len()
    );
    out
}

fn called(peer: &str) -> &str {
    match peer {
        "mpich" => "MPICH",
        "openmpi" => "Open MPI",
        "impi" => "Intel MPI",
        other => other,
    }
}

/// Three significant digits.
fn with_unit(value: f64, unit: &str) -> String {
    let decimals = match value.abs() {
        0.0 => 0,
        magnitude if magnitude >= 100.0 => 0,
        magnitude if magnitude >= 10.0 => 1,
        magnitude if magnitude >= 1.0 => 2,
        _ => 3,
    };
    match unit {
        "ratio" | "share" => format!("{value:.decimals$}"),
        unit => format!("{value:.decimals$} {unit}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = r#"{ "form": 1, "command": "parnass bench", "machine": "2 cores", "date": "2026-01-02", "rounds": 3,
        "libraries": [
            { "name": "parnass", "version": "0.1.0" }, { "name": "mpich", "version": "5.0.2" }, { "name": "mpich-best", "version": "5.0.2" }
        ],
        "rows": [
            { "name": "half-round-trip", "bytes": 8, "unit": "us", "better": "less", "medians": { "parnass": 0.2, "mpich": 1.0, "mpich-best": 0.5 } },
            { "name": "bandwidth", "bytes": 65536, "unit": "GB/s", "better": "more", "medians": { "parnass": 4.0, "mpich": 8.0, "mpich-best": 2.0 } },
            { "name": "floor-start", "bytes": 0, "unit": "ms", "better": "less", "medians": { "machine": 0.5 } }
        ] }"#;

    #[test]
    fn the_section_is_made_anew_and_the_rest_stays() {
        let old = format!("# Title\n{BEGIN}\n\nold figures\n\n{END}\nend\n");
        let files = [("a.json", FILE.to_owned()), ("b.json", FILE.replace("2026-01-02", "2026-03-04"))];
        let new = readme(&old, &files).unwrap();
        assert!(
            new.starts_with("# Title\n") && new.ends_with("\nend\n") && !new.contains("old figures"),
            "{new}"
        );
        assert!(new.contains("| half round trip, 8 B | 0.200 us | 0.500 us | **0.40** |"), "{new}");
        assert!(new.contains("| bandwidth, 64 KiB | 4.00 GB/s | 8.00 GB/s | 0.50 |"), "{new}");
        assert!(new.contains("in 1 of all 2 values") && new.contains("2 cores, 2026-01-02"), "{new}");
        assert!(new.contains("[b.json](b.json)") && new.contains("2 cores, 2026-03-04"), "{new}");
        assert_eq!(readme(&new, &files).unwrap(), new);
        assert!(
            readme("# Title\n", &files).is_err() && readme(&old, &[("c.json", "{}".to_owned())]).is_err()
        );
    }

    #[test]
    fn values_of_a_later_run_take_the_place_of_earlier_ones() {
        let later =
            FILE.replace("0.2,", "0.3,").replace("65536", "131072").replace("2026-01-02", "2027-01-02");
        let merged = with_later(FILE, &later).unwrap();
        let report: Report = serde_json::from_str(&merged).unwrap();
        let ours: Vec<_> =
            report.rows.iter().map(|row| (row.bytes, row.medians.get(OURS).copied())).collect();
        assert_eq!(ours, [(8, Some(0.3)), (65536, Some(4.0)), (0, None), (131_072, Some(4.0))]);
        assert_eq!(report.date, "2026-01-02");
        assert!(with_later(FILE, "{}").is_err());
    }

    #[test]
    fn each_sort_of_machine_has_a_file() {
        assert_eq!(file_of(FILE).unwrap(), "docs/bench-result-other.json");
        assert_eq!(
            file_of(&FILE.replace("2 cores", "2 cores of AMD EPYC")).unwrap(),
            "docs/bench-result-amd.json"
        );
        assert_eq!(
            file_of(&FILE.replace("2 cores", "16 cores of Intel Xeon")).unwrap(),
            "docs/bench-result-intel-16-cores.json"
        );
        assert!(file_of("{}").is_err());
    }
}
