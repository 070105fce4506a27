//! Plots as SVG: lines over the size on logarithmic axes, and bars.

use std::fmt::Write as _;

use super::results::{number, size};

const WIDTH: f64 = 720.0;

/// A value with the range of the rounds.
#[derive(Clone, Copy, Debug)]
pub struct Value {
    /// The median.
    pub median: f64,
    /// The least.
    pub low: f64,
    /// The greatest.
    pub high: f64,
}

/// A line.
#[derive(Debug)]
pub struct Series {
    /// In the legend.
    pub name: String,
    /// A colour of CSS.
    pub colour: String,
    /// Drawn as a floor, broken and without points.
    pub floor: bool,
    /// Sizes and values, by size.
    pub points: Vec<(u64, Value)>,
}

/// Some bars that belong together.
#[derive(Debug)]
pub struct Group {
    /// What they show.
    pub label: String,
    /// Name, colour and value of each.
    pub bars: Vec<(String, String, Value)>,
}

/// Text for an XML document.
pub fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// The size on its axis; nothing has a place half a step before the least.
fn place(bytes: u64) -> f64 {
    if bytes == 0 { 1.0 } else { (bytes as f64).log2() }
}

/// Lines over the size of the message; both axes are logarithmic.
pub fn lines(unit: &str, series: &[Series]) -> String {
    let (left, right, top, bottom, height) = (70.0, 30.0, 10.0, 40.0, 380.0);
    let points = || series.iter().flat_map(|series| &series.points);
    let drawn = || points().filter(|(_, value)| value.low > 0.0);
    let range = |values: &mut dyn Iterator<Item = f64>| {
        values
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(value), high.max(value)))
    };
    let (first, last) = range(&mut points().map(|(bytes, _)| place(*bytes)));
    let (low, high) = range(&mut drawn().flat_map(|(_, value)| [value.low, value.high]).map(f64::log10));
    if !first.is_finite() || !low.is_finite() {
        return String::new();
    }
    let (low, high) = ((low - 0.05).min(high - 0.3), high + 0.05);
    let last = if last > first { last } else { first + 1.0 };
    let x = |bytes: u64| left + (place(bytes) - first) / (last - first) * (WIDTH - left - right - 10.0) + 5.0;
    let y = |value: f64| height - bottom - (value.log10() - low) / (high - low) * (height - bottom - top);

    let mut out = format!("<svg viewBox='0 0 {WIDTH} {height}' role='img'>\n");
    for tick in ticks(low, high) {
        let at = y(tick);
        let _ = writeln!(
            out,
            "<line class='grid' x1='{left}' x2='{}' y1='{at:.1}' y2='{at:.1}'/><text x='{}' y='{:.1}' text-anchor='end'>{}</text>",
            WIDTH - right,
            left - 6.0,
            at + 4.0,
            number(tick)
        );
    }
    let mut sizes: Vec<u64> = points().map(|(bytes, _)| *bytes).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let mut free_from = 0.0;
    for bytes in sizes {
        let at = x(bytes);
        let _ = writeln!(
            out,
            "<line class='grid' x1='{at:.1}' x2='{at:.1}' y1='{top}' y2='{}'/>",
            height - bottom
        );
        if at >= free_from {
            let below = height - bottom + 16.0;
            let _ =
                writeln!(out, "<text x='{at:.1}' y='{below}' text-anchor='middle'>{}</text>", size(bytes));
            free_from = at + 50.0;
        }
    }
    let _ = writeln!(
        out,
        "<text x='{left}' y='{}'>size of the message; vertically {}</text>",
        height - 6.0,
        escaped(unit)
    );
    for series in series {
        let colour = &series.colour;
        let path: Vec<String> = series
            .points
            .iter()
            .filter(|(_, value)| value.median > 0.0)
            .map(|(bytes, value)| format!("{:.1},{:.1}", x(*bytes), y(value.median)))
            .collect();
        if let (true, [(_, only)]) = (series.floor, &series.points[..]) {
            // What has no size is a floor under all of them.
            let at = y(only.median);
            let _ = writeln!(
                out,
                "<line x1='{left}' x2='{}' y1='{at:.1}' y2='{at:.1}' stroke='{colour}' stroke-width='2' stroke-dasharray='5 4'>{}</line>",
                WIDTH - right,
                hint(&series.name, only, unit)
            );
            continue;
        }
        let broken = if series.floor { " stroke-dasharray='5 4'" } else { "" };
        let _ = writeln!(
            out,
            "<polyline points='{}' fill='none' stroke='{colour}' stroke-width='2'{broken}/>",
            path.join(" ")
        );
        for (bytes, value) in series.points.iter().filter(|(_, value)| value.low > 0.0) {
            let (at, radius) = (x(*bytes), if series.floor { 2 } else { 4 });
            let _ = writeln!(
                out,
                "<line x1='{at:.1}' x2='{at:.1}' y1='{:.1}' y2='{:.1}' stroke='{colour}' stroke-opacity='0.5'/><circle cx='{at:.1}' cy='{:.1}' r='{radius}' fill='{colour}'>{}</circle>",
                y(value.low),
                y(value.high),
                y(value.median),
                hint(&format!("{}, {}", series.name, size(*bytes)), value, unit)
            );
        }
    }
    out + "</svg>\n"
}

/// What is shown when somebody points at a value.
fn hint(what: &str, value: &Value, unit: &str) -> String {
    let Value { median, low, high } = value;
    let text = format!("{what}: {} {unit} ({} to {})", number(*median), number(*low), number(*high));
    format!("<title>{}</title>", escaped(&text))
}

/// Values to label between two powers of ten: 1, 2 and 5 of each, or the powers alone when there are many.
fn ticks(low: f64, high: f64) -> Vec<f64> {
    let steps: &[f64] = if high - low > 3.0 { &[1.0] } else { &[1.0, 2.0, 5.0] };
    let powers = low.floor() as i32..=high.ceil() as i32;
    powers
        .flat_map(|power| steps.iter().map(move |step| step * 10f64.powi(power)))
        .filter(|tick| (low..=high).contains(&tick.log10()))
        .collect()
}

/// Bars to the right, in groups. Where values differ by more than a factor of 30 the length is logarithmic.
pub fn bars(unit: &str, groups: &[Group]) -> String {
    let (right, thick, gap) = (90.0, 14.0, 10.0);
    // Room for the longest label, by the width of a letter in general.
    let longest = groups.iter().map(|group| group.label.chars().count()).max().unwrap_or(0);
    let left = (longest as f64 * 6.4 + 20.0).clamp(100.0, 400.0);
    let values = || groups.iter().flat_map(|group| &group.bars).map(|(_, _, value)| value.median);
    let greatest = values().fold(0.0, f64::max);
    let least = values().filter(|value| *value > 0.0).fold(f64::INFINITY, f64::min);
    if greatest <= 0.0 && values().next().is_none() {
        return String::new();
    }
    let room = WIDTH - left - right;
    let logarithmic = least.is_finite() && unit != "share" && greatest / least > 30.0;
    let length = |value: f64| {
        if value <= 0.0 || greatest <= 0.0 {
            0.0
        } else if logarithmic {
            // The least still has a tenth of the room.
            room * (0.1 + 0.9 * (value / least).ln() / (greatest / least).ln())
        } else {
            room * value / greatest
        }
    };
    let bars: usize = groups.iter().map(|group| group.bars.len()).sum();
    let height = bars as f64 * thick + groups.len() as f64 * gap + 24.0;
    let mut out = format!("<svg viewBox='0 0 {WIDTH} {height:.0}' role='img'>\n");
    let mut y = 4.0;
    for group in groups {
        let middle = y + group.bars.len() as f64 * thick / 2.0 + 4.0;
        let label = escaped(&group.label);
        let _ = writeln!(out, "<text x='{}' y='{middle:.1}' text-anchor='end'>{label}</text>", left - 8.0);
        for (name, colour, value) in &group.bars {
            let (length, bar) = (length(value.median), thick - 2.0);
            let _ = writeln!(
                out,
                "<rect x='{left}' y='{y:.1}' width='{length:.1}' height='{bar}' fill='{colour}'>{}</rect><text x='{:.1}' y='{:.1}'>{}</text>",
                hint(&format!("{name}, {}", group.label), value, unit),
                left + length + 5.0,
                y + thick - 4.0,
                number(value.median)
            );
            y += thick;
        }
        y += gap;
    }
    let scale = if logarithmic { ", logarithmic" } else { "" };
    let _ = writeln!(out, "<text x='{left}' y='{:.1}'>{}{scale}</text>", height - 6.0, escaped(unit));
    out + "</svg>\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(median: f64) -> Value {
        Value { median, low: median / 2.0, high: median * 2.0 }
    }

    /// The numbers that follow each `key='`.
    fn numbers(svg: &str, key: &str) -> Vec<f64> {
        let key = format!(" {key}='");
        svg.split(&key).skip(1).filter_map(|rest| rest.split('\'').next()?.parse().ok()).collect()
    }

    #[test]
    fn a_greater_value_stands_higher_and_a_longer_message_further_right() {
        let points = vec![(0, value(1.0)), (8, value(1.0)), (65536, value(100.0))];
        let series = Series { name: "a<b".into(), colour: "red".into(), floor: false, points };
        let svg = lines("us", &[series]);
        let (x, y) = (numbers(&svg, "cx"), numbers(&svg, "cy"));
        assert!(x[0] < x[1] && x[1] < x[2], "{x:?}");
        assert!(y[0] == y[1] && y[2] < y[1], "{y:?}");
        assert!(x.iter().all(|x| (0.0..WIDTH).contains(x)) && y.iter().all(|y| (0.0..380.0).contains(y)));
        assert!(svg.contains("a&lt;b, 64 KiB: 100 us (50.0 to 200)"), "{svg}");
    }

    #[test]
    fn bars_are_as_long_as_their_values() {
        let bar = |median| ("a".to_owned(), "red".to_owned(), value(median));
        let group =
            |values: &[f64]| Group { label: "x".into(), bars: values.iter().map(|v| bar(*v)).collect() };
        let width = |values: &[f64]| {
            let svg = bars("us", &[group(values)]);
            assert_eq!(svg.contains("logarithmic"), values.len() > 2, "{svg}");
            numbers(&svg, "width")
        };
        let plain = width(&[1.0, 4.0]);
        assert!((plain[1] / plain[0] - 4.0).abs() < 0.01, "{plain:?}");
        let far = width(&[0.0, 1.0, 10_000.0]);
        assert!(far[0] == 0.0 && far[1] > 0.0 && far[2] > far[1] && far[2] < 20.0 * far[1], "{far:?}");
    }

    #[test]
    fn a_floor_without_sizes_lies_under_all_of_them() {
        let series =
            |name: &str, floor, points| Series { name: name.into(), colour: "red".into(), floor, points };
        let values = series("a", false, vec![(8, value(2.0)), (64, value(4.0))]);
        let svg = lines("us", &[series("floor", true, vec![(8, value(1.0))]), values]);
        let floor = svg.lines().find(|line| line.contains("floor: ")).unwrap();
        assert!(floor.starts_with("<line x1='70' x2='690'"), "{svg}");
    }

    #[test]
    fn nothing_gives_no_plot() {
        assert_eq!(lines("us", &[]), "");
        assert_eq!(bars("us", &[]), "");
    }

    #[test]
    fn axes_have_round_numbers() {
        assert_eq!(ticks(-0.1, 1.05), [1.0, 2.0, 5.0, 10.0]);
        assert_eq!(ticks(-1.0, 3.0), [0.1, 1.0, 10.0, 100.0, 1000.0]);
    }
}
