//! The report for people: one HTML file without anything outside of it.

use std::fmt::Write as _;

use super::libraries::{BEST, OURS};
use super::results::{MACHINE, Report, Row, number, size};
use super::svg::{Group, Series, Value, bars, escaped, lines};
use super::yardsticks::{Form, Plot, SECTIONS, Section, measure};

/// The colour of ours.
const OUR_COLOUR: &str = "#d9480f";
/// The colours of the others, in their order; and a lighter one of each for the same library at its best.
const COLOURS: [(&str, &str); 6] = [
    ("#1971c2", "#74c0fc"),
    ("#2f9e44", "#8ce99a"),
    ("#7048e8", "#b197fc"),
    ("#a61e4d", "#faa2c1"),
    ("#0b7285", "#66d9e8"),
    ("#846358", "#c9ada7"),
];
/// The colours of floors.
const FLOORS: [&str; 3] = ["#868e96", "#adb5bd", "#495057"];

const STYLE: &str = "
:root { color-scheme: light dark; --ink: #212529; --paper: #fff; --grid: #dee2e6; --good: #2b8a3e; --bad: #c92a2a; }
@media (prefers-color-scheme: dark) { :root { --ink: #e9ecef; --paper: #1a1b1e; --grid: #373a40; --good: #69db7c; --bad: #ff8787; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); max-width: 1500px; margin: 2em auto; padding: 0 1em; }
h1 { margin-bottom: 0; } h2 { margin: 2em 0 0; border-bottom: 1px solid var(--grid); } h3 { margin: 1em 0 .3em; font-size: 1em; }
.plots { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 560px), 1fr)); gap: 1em 2em; }
svg { width: 100%; height: auto; } svg text { font-size: 12px; fill: var(--ink); } .grid { stroke: var(--grid); }
table { border-collapse: collapse; font-size: 14px; } th, td { padding: .15em .7em; text-align: right; border-bottom: 1px solid var(--grid); }
th:first-child, td:first-child { text-align: left; } td { font-variant-numeric: tabular-nums; } .scroll { overflow-x: auto; }
.key { display: inline-block; width: .8em; height: .8em; margin: 0 .4em 0 1em; } .ahead { color: var(--good); } .behind { color: var(--bad); }
code { font-size: .95em; }
";

/// The whole page.
pub fn page(report: &Report) -> String {
    let mut out = format!(
        "<!DOCTYPE html>\n<html lang='en'><head><meta charset='utf-8'><meta name='viewport' content='width=device-width'>\
         <title>Parnass and its peers</title><style>{STYLE}</style></head><body>\n<h1>Parnass and its peers</h1>\n"
    );
    let _ = writeln!(
        out,
        "<p>{}, on {}. Medians of {} interleaved rounds, {} ms for each value; the strokes and the pointer's hints give the range. Repeat it: <code>{}</code></p>",
        escaped(&report.machine),
        report.date,
        report.rounds,
        report.milliseconds,
        escaped(&report.command)
    );
    out += &participants(report);
    out += &summary(report);
    for section in SECTIONS {
        out += &self::section(report, section);
    }
    if !(report.missing.is_empty() && report.notes.is_empty()) {
        out += "<h2>What is missing</h2>\n<ul>\n";
        for missing in report.missing.iter().chain(&report.notes) {
            let (library, what, reason) = (&missing.library, &missing.what, &missing.reason);
            let _ = writeln!(out, "<li>{}, {}: {}</li>", escaped(library), escaped(what), escaped(reason));
        }
        out += "</ul>\n";
    }
    out + "</body></html>\n"
}

fn colour(report: &Report, library: &str) -> String {
    if library == OURS {
        return OUR_COLOUR.to_owned();
    }
    let plain = library.strip_suffix(BEST).unwrap_or(library);
    let is_best = plain != library;
    let mut peers = report.libraries.iter().filter(|peer| peer.name != OURS && !peer.name.ends_with(BEST));
    let index = peers.position(|peer| peer.name == plain).unwrap_or(0);
    let (dark, light) = COLOURS[index % COLOURS.len()];
    (if is_best { light } else { dark }).to_owned()
}

fn participants(report: &Report) -> String {
    let mut out = String::from("<p>");
    for library in &report.libraries {
        let _ = write!(
            out,
            "<span class='key' style='background:{}'></span><b>{}</b> {} (settings: {})<br>",
            colour(report, &library.name),
            escaped(&library.name),
            escaped(&library.version),
            escaped(&library.settings)
        );
    }
    out + "</p>\n"
}

/// In how many values ours is ahead, and the worst of the others.
fn summary(report: &Report) -> String {
    let mut compared: Vec<(f64, &Row)> =
        report.rows.iter().filter_map(|row| Some((row.behind()?, row))).collect();
    if compared.is_empty() {
        return String::new();
    }
    compared.sort_by(|left, right| right.0.total_cmp(&left.0));
    let ahead = compared.iter().filter(|(behind, _)| *behind <= 1.0).count();
    let mut out = format!("<p>Ahead of every peer in {ahead} of {} values.", compared.len());
    let worst: Vec<String> = compared
        .iter()
        .take(5)
        .filter(|(behind, _)| *behind > 1.0)
        .map(|(behind, row)| format!("{} ({behind:.2} times)", escaped(&row.label())))
        .collect();
    if !worst.is_empty() {
        let _ = write!(out, " Furthest behind: {}.", worst.join("; "));
    }
    out + "</p>\n"
}

fn section(report: &Report, section: &Section) -> String {
    let mut shown: Vec<&str> = section.plots.iter().flat_map(|plot| plot.names).copied().collect();
    shown.extend(section.others);
    let rows: Vec<&Row> = shown.iter().flat_map(|name| report.rows_of(name)).collect();
    if rows.is_empty() {
        return String::new();
    }
    let mut out = format!("<h2>{}</h2>\n<p>{}</p>\n<div class='plots'>\n", section.title, section.note);
    for plot in section.plots {
        let drawn = match plot.form {
            Form::Lines => lines_plot(report, plot),
            Form::Bars => bars_plots(report, plot),
        };
        if !drawn.is_empty() {
            let _ = writeln!(out, "<div><h3>{}</h3>\n{drawn}</div>", plot.title);
        }
    }
    out += "</div>\n";
    let numbers = table(report, &rows);
    if section.plots.is_empty() {
        return out + &numbers;
    }
    let _ = writeln!(out, "<details><summary>The numbers</summary>{numbers}</details>");
    out
}

fn value(row: &Row, library: &str) -> Option<Value> {
    let (median, values) = (*row.medians.get(library)?, row.values.get(library)?);
    let low = values.iter().copied().fold(f64::INFINITY, f64::min);
    let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    Some(Value { median, low, high })
}

/// The points of a value on one library.
fn points(report: &Report, name: &str, library: &str) -> Vec<(u64, Value)> {
    report.rows_of(name).iter().filter_map(|row| Some((row.bytes, value(row, library)?))).collect()
}

fn lines_plot(report: &Report, plot: &Plot) -> String {
    let Some(name) = plot.names.first() else { return String::new() };
    let rows = report.rows_of(name);
    let Some(unit) = rows.first().map(|row| row.unit.as_str()) else { return String::new() };
    let mut series = Vec::new();
    for (index, floor) in plot.floors.iter().enumerate() {
        let points: Vec<(u64, Value)> = points(report, floor, MACHINE)
            .into_iter()
            .filter(|(bytes, _)| rows.iter().any(|row| row.bytes == *bytes))
            .collect();
        let title = measure(floor).map_or(*floor, |measure| measure.title);
        let colour = FLOORS[index % FLOORS.len()].to_owned();
        series.push(Series { name: title.to_owned(), colour, floor: true, points });
    }
    // Ours is drawn last, over the others.
    for library in report.libraries.iter().rev() {
        let (name, colour) = (library.name.clone(), colour(report, &library.name));
        let points = points(report, plot.names[0], &library.name);
        series.push(Series { name, colour, floor: false, points });
    }
    series.retain(|series| !series.points.is_empty());
    let mut legend = String::new();
    for series in series.iter().rev() {
        let _ = write!(
            legend,
            "<span class='key' style='background:{}'></span>{}",
            series.colour,
            escaped(&series.name)
        );
    }
    format!("{}<p>{legend}</p>\n", lines(unit, &series))
}

/// Bars of one unit each: values of several units cannot share a scale.
fn bars_plots(report: &Report, plot: &Plot) -> String {
    let mut units: Vec<(&str, Vec<Group>)> = Vec::new();
    for row in plot.names.iter().flat_map(|name| report.rows_of(name)) {
        let bars = report.libraries.iter().filter_map(|library| {
            Some((library.name.clone(), colour(report, &library.name), value(row, &library.name)?))
        });
        let title = measure(&row.name).map_or(row.name.as_str(), |measure| measure.title);
        let title = title.split_once(", ").map_or(title, |(_, rest)| rest);
        let several = report.rows_of(&row.name).len() > 1;
        let label = if several { format!("{title}, {}", size(row.bytes)) } else { title.to_owned() };
        let group = Group { label, bars: bars.collect() };
        match units.iter_mut().find(|(unit, _)| *unit == row.unit) {
            Some((_, groups)) => groups.push(group),
            None => units.push((&row.unit, vec![group])),
        }
    }
    units.iter().map(|(unit, groups)| bars(unit, groups)).collect()
}

fn table(report: &Report, rows: &[&Row]) -> String {
    let of_machine = rows.iter().all(|row| row.medians.contains_key(MACHINE));
    let columns: Vec<&str> = if of_machine {
        vec![MACHINE]
    } else {
        report.libraries.iter().map(|library| library.name.as_str()).collect()
    };
    let mut out = String::from("<div class='scroll'><table><tr><th></th><th>unit</th>");
    for column in &columns {
        let _ = write!(out, "<th>{}</th>", escaped(column));
    }
    out += if of_machine { "</tr>\n" } else { "<th>ours / best peer</th></tr>\n" };
    for row in rows {
        let _ = write!(out, "<tr><td>{}</td><td>{}</td>", escaped(&row.label()), escaped(&row.unit));
        for column in &columns {
            let cell = row.medians.get(*column).map_or(String::new(), |value| number(*value));
            let _ = write!(out, "<td>{cell}</td>");
        }
        if !of_machine {
            let class = if row.behind().is_some_and(|behind| behind > 1.0) { "behind" } else { "ahead" };
            let ratio = row.ratio().map_or(String::new(), |ratio| format!("{ratio:.2}"));
            let _ = write!(out, "<td class='{class}'>{ratio}</td>");
        }
        out += "</tr>\n";
    }
    out + "</table></div>\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::results::Participant;

    #[test]
    fn each_section_with_values_has_its_plots_and_numbers() {
        let library = |name: &str| Participant {
            name: name.to_owned(),
            version: "1".to_owned(),
            settings: "A&B".to_owned(),
        };
        let libraries = vec![library(OURS), library("peer")];
        let mut report = Report::new("parnass bench".to_owned(), 2, 50, libraries);
        for (library, factor) in [(OURS, 1.0), ("peer", 2.0)] {
            for round in [1.0, 1.5] {
                report.add(library, "half-round-trip", 8, factor * round, "us");
                report.add(library, "half-round-trip", 1024, 3.0 * factor * round, "us");
                report.add(library, "slow-down-by-63-waiting", 0, factor, "ratio");
                report.add(library, "cores-used-by-63-waiting", 0, 0.0, "cores");
            }
        }
        report.add(MACHINE, "floor-cache-line", 8, 0.1, "us");
        report.miss("peer", "threads", "too <slow>");
        let page = page(&report);
        for part in [
            "<h2>Latency</h2>",
            "<h2>More ranks than cores</h2>",
            "<h2>The machine</h2>",
            "<polyline",
            "stroke-dasharray",
            "A&amp;B",
            "peer, threads: too &lt;slow&gt;",
            "Ahead of every peer in 3 of 3 values.",
            "<td class='ahead'>0.50</td>",
        ] {
            assert!(page.contains(part), "{part}: {page}");
        }
        assert!(!page.contains("<h2>Overlap</h2>"), "no values, no section");
        assert!(!page.contains("NaN") && !page.contains("inf"), "{page}");
    }
}
