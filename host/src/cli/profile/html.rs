//! A profile as a part of a page: the counts of each source line with bars, and the totals.

use std::fmt::Write as _;

use host::{picture::page::escaped, profile::Total};

use super::report::{LineReport, Report};

/// The width of the longest bar.
const WIDTH: f64 = 120.0;

/// The counts of a kernel, as HTML.
pub(super) fn counts(report: &Report, totals: &[Total]) -> String {
    let Report { kernel, m, n, k, dtype, blocks, sampled, .. } = report;
    let mut html = format!(
        "<h2>{kernel}</h2>\n<p class=\"soft\">m = {m}, n = {n}, k = {k}, {dtype}; {sampled} of {blocks} blocks counted \
         on the CPU.</p>\n<div class=\"scroll\"><table class=\"counts lines\">\n<tr><th>source line</th>\
         <th>operation</th><th>bytes</th><th>requests</th><th>a request</th><th>at best</th><th></th></tr>\n"
    );
    let most = report.lines.iter().filter(|line| line.bytes > 0);
    let most = most.map(|line| line.units_per_request).fold(1.0, f64::max);
    for line in &report.lines {
        self::line(&mut html, line, most);
    }
    html += "</table></div>\n<h2>Totals, as Nsight Compute names them</h2>\n\
             <div class=\"scroll\"><table class=\"counts totals\">\n";
    for Total { name, value, .. } in totals {
        let _ = writeln!(html, "<tr><td>{}</td><td>{value}</td></tr>", escaped(name));
    }
    html + "</table></div>\n"
}

/// A row: the bar is the units of a request, the part beyond the fewest possible in another colour.
fn line(html: &mut String, line: &LineReport, most: f64) {
    let place = &line.place;
    let LineReport {
        operation, bytes, requests, unit, units_per_request, ideal_per_request, ..
    } = line;
    let text = escaped(place.source.unwrap_or_default());
    let file = escaped(place.file);
    let _ = write!(
        html,
        "<tr><td><code>{text}</code><br><small>{file}:{}</small></td><td>{operation}</td>",
        place.line
    );
    if *bytes == 0 {
        let _ =
            writeln!(html, "<td></td><td>{requests}</td><td>{unit}</td><td></td><td></td></tr>");
        return;
    }
    let (ideal, over) = (ideal_per_request, units_per_request - ideal_per_request);
    let class = if line.over_ideal.is_some() { " class=\"lost\"" } else { "" };
    let scale = |units: f64| units * WIDTH / most;
    let (good, lost) = (scale(*ideal), scale(over.max(0.0)));
    let _ = writeln!(
        html,
        "<td data-of=\"bytes\">{bytes}</td><td data-of=\"requests\">{requests}</td><td data-of=\"a request\"{class}>\
         {units_per_request:.2} {unit}</td><td data-of=\"at best\">{ideal:.2}</td>\
         <td><svg width=\"{WIDTH}\" height=\"14\" role=\"img\" aria-label=\"{units_per_request:.2} {unit} a \
         request\"><rect class=\"bar\" width=\"{good:.1}\" height=\"14\"/><rect class=\"over\" x=\"{good:.1}\" \
         width=\"{lost:.1}\" height=\"14\"/></svg></td></tr>"
    );
}
