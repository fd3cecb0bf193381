//! A page in one file, for a browser: the picture of a traced block.
//!
//! The page needs nothing else: no server, no network, no framework. Its data are JSON in the page,
//! and one script draws them as SVG.
//!
//! ```
//! use host::{Shape, picture, product};
//!
//! let kernel = product::find("tiled16")?;
//! let picture = picture::of_block(kernel, Shape::new(16, 16, 16)?, [0, 0], 1)?;
//! let page = picture::page::html("tiled16", &[picture::page::block(&picture)]);
//! assert!(page.starts_with("<!doctype html>"));
//! # Ok::<(), host::Error>(())
//! ```

use std::collections::BTreeMap;

use serde_json::{Value, to_value};

use super::Picture;

const STYLE: &str = include_str!("page/page.css");
const PICTURE_STYLE: &str = include_str!("page/picture.css");
const PICTURE_SCRIPT: &str = include_str!("page/picture.js");

/// The most bytes of requests in a page. Those of further warps, and later ones, are left out.
const MOST_BYTES: usize = 160 << 10;

/// A page with that title and these parts, which are HTML.
pub fn html(title: &str, parts: &[String]) -> String {
    let title = escaped(title);
    let body = parts.concat();
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{title}</title>\n\
         <link rel=\"icon\" href=\"data:,\">\n<style>\n{STYLE}{PICTURE_STYLE}</style>\n</head>\n<body>\n<main>\n\
         <h1>{title}</h1>\n{body}</main>\n<script>\n{PICTURE_SCRIPT}</script>\n</body>\n</html>\n"
    )
}

/// The data of a picture.
fn data(picture: &Picture) -> Value {
    // Plain fields, which JSON can say.
    to_value(picture).unwrap_or_default()
}

/// The picture as a part of a page: the script draws it.
pub fn block(picture: &Picture) -> String {
    let mut data = data(picture);
    shorten(&mut data, picture);
    embedded(&data)
}

/// The worst request of each source line, as a part of a page.
pub fn samples(picture: &Picture) -> String {
    let mut data = data(picture);
    let key = |place: usize| {
        let request = &picture.requests[place];
        let line = &picture.lines[request.line];
        (line.file.clone(), line.line, request.operation, request.width)
    };
    let mut worst = BTreeMap::<_, usize>::new();
    for (place, request) in picture.requests.iter().enumerate() {
        if request.width == 0 && request.area.is_none() {
            continue;
        }
        let best = worst.entry(key(place)).or_insert(place);
        let known = &picture.requests[*best];
        // The ratio to the fewest possible, without a division.
        if request.units * known.ideal.max(1) > known.units * request.ideal.max(1) {
            *best = place;
        }
    }
    let chosen = worst.into_values().map(|place| data["requests"][place].take()).collect();
    data["requests"] = Value::Array(chosen);
    data["sampled"] = true.into();
    data["stages"] = Value::Null;
    embedded(&data)
}

/// JSON for the script, as an element of the page.
fn embedded(data: &Value) -> String {
    // A script ends at the first `</`, and HTML knows other tags in it.
    let json = data.to_string().replace('<', "\\u003c");
    format!("<div class=\"trace\"><script type=\"application/json\">{json}</script></div>\n")
}

/// Leaves out warps, so that the page stays small: the first and the last warp are kept first,
/// since a producer is often the last.
fn shorten(data: &mut Value, picture: &Picture) {
    let sizes = match &data["requests"] {
        Value::Array(requests) => requests.iter().map(|one| one.to_string().len()).collect(),
        _ => Vec::new(),
    };
    let mut warps = picture.requests.iter().map(|one| one.warp).collect::<Vec<_>>();
    warps.sort_unstable();
    warps.dedup();
    if warps.len() > 2 {
        let last = warps.pop().unwrap_or_default();
        warps.insert(1, last);
    }
    let (mut kept, mut bytes) = (vec![false; sizes.len()], 0);
    'all: for (number, warp) in warps.into_iter().enumerate() {
        let own = || picture.requests.iter().enumerate().filter(|(_, one)| one.warp == warp);
        let whole = own().map(|(place, _)| sizes[place]).sum::<usize>();
        // A further warp is shown as a whole, or not at all.
        if number > 1 && bytes + whole > MOST_BYTES {
            break;
        }
        let limit = if number == 0 { MOST_BYTES * 3 / 4 } else { MOST_BYTES };
        for (place, _) in own() {
            if bytes + sizes[place] > limit {
                continue 'all;
            }
            bytes += sizes[place];
            kept[place] = true;
        }
    }
    let left_out = kept.iter().filter(|kept| !**kept).count();
    if let Value::Array(requests) = &mut data["requests"] {
        let mut kept = kept.into_iter();
        requests.retain(|_| kept.next().unwrap_or_default());
    }
    data["left_out_requests"] = left_out.into();
}

/// Text in HTML.
pub fn escaped(text: &str) -> String {
    let mut html = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => html += "&amp;",
            '<' => html += "&lt;",
            '>' => html += "&gt;",
            '"' => html += "&quot;",
            letter => html.push(letter),
        }
    }
    html
}
