// Opens pages with pictures in headless Chromium, as `cargo xtask browser` asks. Each must load from its file without an
// error, show a picture that is not empty, step by keyboard, and fit into 400 and 1200 pixels, light and dark.
//
//     node pages.mjs CHROMIUM SCREENSHOTS PAGE..
//
// SCREENSHOTS is a folder; `-` takes none.
import { basename } from "node:path";
import { pathToFileURL } from "node:url";
import puppeteer from "puppeteer-core";

const [chromium, screenshots, ...files] = process.argv.slice(2);
const WIDTHS = [400, 1200];
const failures = [];
let checks = 0;

function check(holds, ...what) {
  checks += 1;
  if (!holds) { failures.push(what.join(" ")); }
}

/** Presses Tab until an element that matches has the focus. */
async function tabTo(page, selector) {
  for (let presses = 0; presses < 400; presses += 1) {
    const there = await page.evaluate((wanted) => document.activeElement.matches(wanted), selector);
    if (there) { return true; }
    await page.keyboard.press("Tab");
  }
  return false;
}

const text = (page, selector) => page.$eval(selector, (element) => element.textContent);

/** The width of the outline around what has the focus, in pixels. */
const outline = (page) => page.evaluate(() => {
  const style = getComputedStyle(document.activeElement);
  return style.outlineStyle === "none" ? 0 : parseFloat(style.outlineWidth);
});

/** The wavefronts and sectors of all steps must be as many as the run counted. Some steps are drawn, too. */
const wrongSteps = (page) => page.evaluate(() => {
  const { trace } = document.querySelector(".trace");
  const units = document.querySelector(".trace .units");
  const steps = trace.data.requests.filter((one) => one.width > 0);
  const wrong = steps.filter((one) => trace.served(one).length !== one.units)
    .map((one) => `warp ${one.warp}: ${trace.served(one).length} computed, ${one.units} counted`);
  const stride = Math.ceil(trace.steps.length / 12);
  for (let step = 0; step < trace.steps.length; step += stride) {
    trace.go(step);
    const one = trace.steps[step];
    if (one.width > 0 && Number(units.dataset.drawn) !== one.units) {
      wrong.push(`step ${step}: ${units.dataset.drawn} drawn, ${one.units} counted`);
    }
  }
  return wrong;
});

/** In every step of every warp the stages' panel must be at the step's event. All events are some step's. */
const cursorsApart = (page) => page.evaluate(() => {
  const { trace } = document.querySelector(".trace");
  const apart = [];
  const chosen = trace.steps[trace.step].warp ?? trace.warps[0];
  for (const warp of trace.warps) {
    trace.choose(warp);
    const events = new Set(trace.steps.map((one) => one.tick));
    if (events.size !== trace.data.stages.ticks.length) { apart.push(`warp ${warp} comes by ${events.size} events`); }
    const stride = Math.ceil(trace.steps.length / 40);
    let last = -1;
    for (let step = 0; step < trace.steps.length; step += stride) {
      trace.go(step);
      const { tick } = trace.steps[step];
      const said = Number(/^Event (\d+) of/.exec(document.querySelector(".stages .say").textContent)[1]) - 1;
      const at = Number(document.querySelector(".stages .cursor").getAttribute("x1"));
      if (said !== tick || (tick > last) !== (at > trace.lastCursor || last < 0)) {
        apart.push(`warp ${warp}, step ${step}: event ${said} at ${at} for ${tick}`);
      }
      trace.lastCursor = at;
      last = tick;
    }
  }
  trace.choose(chosen);
  return apart;
});

/** Where stages are filled, each warp must go through the phases in order, and some warp through all. */
const wrongPhases = (page) => page.evaluate(() => {
  const { trace } = document.querySelector(".trace");
  const wrong = [];
  let most = 0;
  for (const warp of trace.warps) {
    trace.choose(warp);
    const phases = trace.steps.map((one) => one.phase);
    const unsorted = phases.findIndex((phase, i) => i > 0 && phase < phases[i - 1]);
    if (unsorted >= 0) { wrong.push(`warp ${warp}: phase ${phases[unsorted]} after ${phases[unsorted - 1]}`); }
    most = Math.max(most, new Set(phases).size);
    let pages = 0;
    for (let step = -1; step !== trace.step && pages <= trace.steps.length; pages += 1) {
      step = trace.step;
      trace.phase(1);
    }
    if (trace.step !== trace.steps.length - 1) { wrong.push(`warp ${warp}: the last phase is not reached`); }
  }
  if (most !== trace.data.phases) { wrong.push(`${most} of ${trace.data.phases} phases`); }
  trace.choose(trace.warps[0]);
  return wrong;
});

/** The largest picture, and the number of marked cells with an area. */
const drawn = (page) => page.evaluate(() => {
  const boxes = [...document.querySelectorAll(".trace svg")].map((one) => one.getBoundingClientRect());
  const marked = [...document.querySelectorAll(".trace .now, .trace .before, .trace .filling")];
  const cell = document.querySelector(".trace rect.cell");
  const fill = (one) => getComputedStyle(one).fill;
  const seen = marked.filter((one) => {
    const { width, height } = one.getBoundingClientRect();
    return width > 0 && height > 0 && fill(one) !== fill(cell);
  });
  return { widest: Math.max(0, ...boxes.map((box) => box.width)), marked: seen.length };
});

async function look(browser, file, width, scheme) {
  const page = await browser.newPage();
  const name = `${basename(file)} at ${width} pixels, ${scheme}:`;
  const own = pathToFileURL(file).href;
  page.on("console", (message) => {
    if (["error", "warn"].includes(message.type())) { check(false, name, "console:", message.text()); }
  });
  page.on("pageerror", (error) => check(false, name, "error:", error.message));
  page.on("request", (request) => {
    check(/^(file|data|blob):/.test(request.url()), name, "asks the network for", request.url());
  });
  page.on("requestfailed", (request) => check(false, name, "cannot load", request.url()));
  await page.setViewport({ width, height: 900 });
  await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
  await page.goto(own);
  await page.waitForSelector(".trace svg");
  const all = await page.evaluate(() => document.documentElement.scrollWidth);
  check(all <= width, name, `the page is ${all} pixels wide`);

  // Nothing has the focus. The key goes to the picture that is in view, and turns no page.
  await page.$eval(".trace .figure", (figure) => figure.scrollIntoView());
  const opened = await page.$eval(".trace", (root) => {
    const { steps, step } = root.trace;
    const lost = steps.map((one) => (one.width > 0 ? one.units - one.ideal : 0));
    return lost[step] === Math.max(...lost);
  });
  check(opened, name, "the picture does not open at the request that loses the most");
  const apart = await page.$eval(".trace", (root) => {
    const box = (name) => root.querySelector(`.product .of-${name} svg`)?.getBoundingClientRect();
    const [a, b, c] = ["A", "B", "C"].map(box);
    if (!a) { return root.trace.data.sampled ? "" : "no product is drawn"; }
    const same = (one, other) => Math.abs(one - other) < 1;
    const lie = same(a.top, c.top) && same(a.height, c.height) && a.right < c.left;
    return lie && same(b.left, c.left) && same(b.width, c.width) && b.bottom < c.top ? "" : "A, B and C do not lie as in a product";
  });
  check(apart === "", name, apart);
  const start = await text(page, ".trace .where");
  await page.keyboard.press("ArrowRight");
  check((await text(page, ".trace .where")) !== start, name, "an arrow key does not step the picture in view");
  check(page.url() === own, name, "an arrow key without a focus leaves the page for", page.url());
  await page.keyboard.press("ArrowLeft");
  check((await text(page, ".trace .where")) === start, name, "the left arrow does not lead back");

  check(await tabTo(page, ".trace .figure"), name, "Tab does not reach the picture");
  check(await outline(page) >= 2, name, "the focus is not seen");
  await page.keyboard.press("Home");
  const before = await text(page, ".trace .where");
  await page.keyboard.press("ArrowRight");
  const after = await text(page, ".trace .where");
  check(before !== after && after.startsWith("step 2 of "), name, `the right arrow leads from "${before}" to "${after}"`);
  check(page.url() === own, name, "an arrow key leaves the page for", page.url());
  await page.keyboard.press("End");
  check(/^step (\d+) of \1,/.test(await text(page, ".trace .where")), name, "End does not lead to the last step");
  const last = await text(page, ".trace .say");
  await page.keyboard.press("Home");
  check((await text(page, ".trace .where")) === before, name, "Home does not lead back");
  check(last.length > 10, name, "the last step says nothing");
  const { widest, marked } = await drawn(page);
  check(widest > 20 && marked > 0, name, `the picture is empty: ${widest} pixels wide, ${marked} marked cells`);

  if (await page.$(".trace .stages svg")) {
    check(await tabTo(page, ".stages .wide"), name, "Tab does not reach the stages");
    check(await outline(page) >= 2, name, "the focus on the stages is not seen");
    const first = await text(page, ".trace .where");
    await page.keyboard.press("ArrowRight");
    check(first !== (await text(page, ".trace .where")), name, "the stages do not step with the rest");
    check(await page.$eval(".stages .wide", (box) => box === document.activeElement), name, "a step takes the focus from the stages");
    const spans = await page.$$eval(".stages rect.read", (all) => all.length);
    check(spans > 0, name, "no stage is read");
    const apart = await cursorsApart(page);
    check(apart.length === 0, name, apart.slice(0, 3).join("; "));
    const wrong = await wrongPhases(page);
    check(wrong.length === 0, name, wrong.slice(0, 3).join("; "));
  }
  if (width === WIDTHS[0] && scheme === "light") {
    const wrong = await wrongSteps(page);
    check(wrong.length === 0, name, wrong.slice(0, 3).join("; "));
  }
  const colour = await page.$eval(".trace", (element) => getComputedStyle(element).backgroundColor);
  if (screenshots !== "-") {
    const shot = `${screenshots}/${basename(file, ".html")}-${width}-${scheme}.png`;
    await page.screenshot({ path: shot, fullPage: true });
  }
  await page.close();
  return colour;
}

// No network, no sandbox (CI runs as root), and nothing of the user's.
const browser = await puppeteer.launch({
  executablePath: chromium, headless: true, protocolTimeout: 30000, args: ["--no-sandbox", "--disable-dev-shm-usage"],
});
try {
  for (const file of files) {
    // One after another: a page in the background has no focus.
    let light;
    for (const width of WIDTHS) { light = await look(browser, file, width, "light"); }
    const dark = await look(browser, file, WIDTHS[0], "dark");
    check(light !== dark, basename(file), "is as light in the dark:", dark);
  }
} finally {
  await browser.close();
}
console.log(`browser: ${files.length} pages, ${checks} checks, ${failures.length} failed`);
failures.slice(0, 30).forEach((failure) => console.error(`browser: FAILED: ${failure}`));
process.exitCode = failures.length === 0 && files.length > 0 ? 0 : 1;
