/* Draws traced blocks: one for each element of class "trace", from the JSON in it. The format is that of
   `explain NAME --trace --json`. A classic script without dependencies: it works from a file. */
(function () {
  "use strict";

  var SVG = "http://www.w3.org/2000/svg";
  var SECTOR = 32, BANKS = 32, WORD = 4;

  /* An element with attributes and children. */
  function make(name, attributes, children, space) {
    var element = space ? document.createElementNS(space, name) : document.createElement(name);
    Object.keys(attributes || {}).forEach(function (key) { element.setAttribute(key, attributes[key]); });
    (children || []).forEach(function (child) {
      element.appendChild(typeof child === "string" ? document.createTextNode(child) : child);
    });
    return element;
  }
  function svg(name, attributes, children) { return make(name, attributes, children, SVG); }
  function rect(x, y, width, height, kind) {
    return svg("rect", { x: x, y: y, width: width, height: height, "class": kind });
  }
  function words(text, x, y, kind, anchor) {
    return svg("text", { x: x, y: y, "class": kind || "", "text-anchor": anchor || "middle" }, [String(text)]);
  }
  function drawing(width, height, label, children) {
    var view = { viewBox: "0 0 " + width + " " + height, width: width, height: height, role: "img", "aria-label": label };
    return svg("svg", view, children);
  }
  function plural(count, word) { return count + " " + word + (count === 1 ? "" : "s"); }

  /* Lanes and their addresses, from runs: first lane, count, first address, step. */
  function lanesOf(request) {
    var lanes = [];
    request.lanes.forEach(function (run) {
      for (var i = 0; i < run[1]; i++) { lanes.push({ lane: run[0] + i, address: run[2] + i * run[3] }); }
    });
    return lanes;
  }

  /* "0-15, 17": numbers as ranges. */
  function ranges(numbers) {
    var parts = [];
    numbers.forEach(function (number) {
      var last = parts[parts.length - 1];
      if (last && number === last[1] + 1) { last[1] = number; } else { parts.push([number, number]); }
    });
    return parts.map(function (part) { return part[0] === part[1] ? part[0] : part[0] + "-" + part[1]; }).join(", ");
  }

  /* The sectors of a request to global memory: which lanes access each word. */
  function sectorsOf(lanes, width) {
    var sectors = {};
    lanes.forEach(function (one) {
      var end = one.address + width;
      for (var word = Math.floor(one.address / WORD); word * WORD < end; word++) {
        var sector = Math.floor(word * WORD / SECTOR);
        sectors[sector] = sectors[sector] || {};
        var there = sectors[sector][word % (SECTOR / WORD)] = sectors[sector][word % (SECTOR / WORD)] || [];
        if (there.indexOf(one.lane) < 0) { there.push(one.lane); }
      }
    });
    return Object.keys(sectors).map(Number).sort(function (a, b) { return a - b; }).map(function (number) {
      return { number: number, words: sectors[number] };
    });
  }

  /* The wavefronts of a request to shared memory. Lanes with wide accesses are served in groups; in each wavefront a
     bank delivers one word. The rule is that of the counts: `coalescing.rs`. */
  function wavefrontsOf(lanes, width) {
    var words = Math.ceil(width / WORD), most = Math.max(1, Math.floor(BANKS / words));
    var most2 = Math.min(2 * most, BANKS), fronts = [];
    function paired(part) {
      return [1, 2].some(function (apart) {
        return part.every(function (one, i) { return !part[i ^ apart] || part[i ^ apart].address === one.address; });
      });
    }
    function group(part) {
      var banks = {}, deepest = 0, base = fronts.length;
      part.forEach(function (one) {
        for (var word = Math.floor(one.address / WORD); word * WORD < one.address + width; word++) {
          var list = banks[word % BANKS] = banks[word % BANKS] || [];
          var known = list.filter(function (entry) { return entry.word === word; })[0];
          if (!known) { known = { word: word, lanes: [] }; list.push(known); }
          if (known.lanes.indexOf(one.lane) < 0) { known.lanes.push(one.lane); }
          deepest = Math.max(deepest, list.length);
        }
      });
      for (var i = 0; i < deepest; i++) { fronts.push({}); }
      Object.keys(banks).forEach(function (bank) {
        banks[bank].forEach(function (entry, i) { fronts[base + i][bank] = entry; });
      });
    }
    for (var at = 0; at < lanes.length; at += most2) {
      var chunk = lanes.slice(at, at + most2), size = paired(chunk) ? most2 : most;
      for (var i = 0; i < chunk.length; i += size) { group(chunk.slice(i, i + size)); }
    }
    return fronts;
  }

  function Trace(root, data) {
    this.root = root;
    this.data = data;
    this.warps = [];
    data.requests.forEach(function (one) {
      if (this.warps.indexOf(one.warp) < 0) { this.warps.push(one.warp); }
    }, this);
    this.warps.sort(function (a, b) { return a - b; });
    this.step = 0;
    this.build();
    this.choose(data.sampled ? null : this.warps[0]);
    this.step = this.worst();
    var self = this, width = 0;
    new ResizeObserver(function () {
      if (root.clientWidth !== width) { width = root.clientWidth; self.draw(); }
    }).observe(root);
  }

  Trace.prototype.build = function () {
    var data = this.data, self = this, size = data.m === null ? data.kernel : "the product " + data.m + " x " + data.n + " x " + data.k;
    var button = function (text, label, act) {
      var one = make("button", { type: "button", "aria-label": label, title: label }, [text]);
      one.addEventListener("click", act);
      return one;
    };
    this.pick = make("select", { "aria-label": "warp" }, this.warps.map(function (warp) {
      return make("option", { value: warp }, ["warp " + warp]);
    }));
    this.pick.addEventListener("change", function () { self.choose(Number(self.pick.value)); });
    this.range = make("input", { type: "range", min: 0, value: 0, "aria-label": "step" });
    this.range.addEventListener("input", function () { self.go(Number(self.range.value)); });
    this.where = make("span", { "class": "where" });
    this.code = make("div", { "class": "code" });
    this.say = make("p", { "class": "say", "aria-live": "polite" });
    this.maps = make("div", { "class": "maps" });
    this.units = make("div", { "class": "wide units" });
    this.list = make("div", {});
    this.stages = make("div", {});
    var bar = make("div", { "class": "bar", role: "group", "aria-label": "steps" }, [
      button("\u00ab", "previous phase", function () { self.phase(-1); }),
      button("\u2039", "previous step", function () { self.go(self.step - 1); }),
      button("\u203a", "next step", function () { self.go(self.step + 1); }),
      button("\u00bb", "next phase", function () { self.phase(1); })
    ].concat(data.sampled ? [] : [this.pick], [this.range, this.where]));
    this.figure = make("div", {
      "class": "figure", tabindex: 0, role: "group",
      "aria-label": "memory accesses of a warp, step by step: arrow keys left and right, page up and down for phases"
    }, [bar, this.code, this.say, this.maps, this.units]);
    this.figure.addEventListener("keydown", function (event) { self.key(event); });
    var lost = data.left_out_requests + data.left_out;
    var left = lost ? " " + plural(lost, "request") + " of other warps, or later ones, are left out." : "";
    var about = data.sampled
      ? "For each source line the worst request of block " + data.at + " of " + size + "."
      : "Block " + data.at + " (column, row) of " + size + ", recorded on the CPU." + left;
    [
      make("p", { "class": "about" }, [about]), this.figure,
      make("p", { "class": "hint" }, ["Keys: \u2190 \u2192 step, Page Up and Page Down phase, Home and End." +
        (data.stages ? " Between the warp's own steps are the events of the stages." : "")]),
      this.stages, make("details", {}, [make("summary", {}, ["Each lane of this step"]), this.list]),
      this.totals()
    ].forEach(function (part) { self.root.appendChild(part); });
  };

  Trace.prototype.key = function (event) {
    var own = event.target.tagName === "SELECT" || event.target.tagName === "INPUT";
    var moves = {
      ArrowRight: [this.go, this.step + 1], ArrowLeft: [this.go, this.step - 1], Home: [this.go, 0],
      End: [this.go, Infinity], PageDown: [this.phase, 1], PageUp: [this.phase, -1],
      ArrowDown: [this.phase, 1], ArrowUp: [this.phase, -1]
    };
    var move = moves[event.key];
    if (!move || event.ctrlKey || event.altKey || event.metaKey) { return; }
    // A book turns its pages by the same keys.
    event.stopPropagation();
    if (own) { return; }
    event.preventDefault();
    move[0].call(this, move[1]);
  };

  Trace.prototype.choose = function (warp) {
    this.steps = this.merged(this.data.requests.filter(function (one) { return warp === null || one.warp === warp; }));
    this.range.max = Math.max(0, this.steps.length - 1);
    this.go(0);
  };

  /* A warp's requests, and between them the events of the stages in which it has no part: the steps of all panels. */
  Trace.prototype.merged = function (requests) {
    var data = this.data.stages, steps = [], next = 0;
    if (!data) { return requests; }
    var until = function (tick, phase) {
      for (; next < tick; next++) {
        var event = data.ticks[next], place = [data.starts[event.stage], data.bytes];
        steps.push({ event: event, tick: next, phase: phase, barriers: event.barriers, lanes: [], width: 0, operands: [place] });
      }
    };
    var phase = requests.length ? requests[0].phase : 0;
    requests.forEach(function (one) {
      until(one.tick, phase);
      next = Math.max(next, one.tick + 1);
      phase = one.phase;
      steps.push(one);
    });
    until(data.ticks.length, phase);
    return steps;
  };

  /* What belongs together: a phase of a kernel with stages; elsewhere what is between two barriers. */
  Trace.prototype.part = function (one) { return this.data.stages ? one.phase : one.barriers; };

  /* The first of the steps that lose the most sectors or wavefronts: there a picture opens. */
  Trace.prototype.worst = function () {
    var lost = this.steps.map(function (one) { return one.width > 0 ? one.units - one.ideal : 0; });
    return Math.max(0, lost.indexOf(Math.max.apply(null, lost)));
  };

  Trace.prototype.go = function (step) {
    this.step = Math.max(0, Math.min(this.steps.length - 1, step));
    this.draw();
  };

  /* To the first step of the next phase, or of this one, or of the one before. */
  Trace.prototype.phase = function (by) {
    var steps = this.steps, at = this.step, self = this;
    var begins = function (i) { return i === 0 || self.part(steps[i]) !== self.part(steps[i - 1]); };
    do { at += by; } while (at > 0 && at < steps.length - 1 && !begins(at));
    this.go(at);
  };

  /* The name of an element at an address. */
  Trace.prototype.element = function (memory, address) {
    var at = Math.floor((address - memory.offset) / memory.element);
    if (!memory.columns) { return memory.name + "[" + at + "]"; }
    return memory.name + "[" + Math.floor(at / memory.columns) + "," + at % memory.columns + "]";
  };

  Trace.prototype.draw = function () {
    var one = this.steps[this.step];
    if (!one) { this.say.textContent = "This block accesses no memory."; return; }
    var memory = this.data.memories[one.memory], lanes = lanesOf(one);
    var line = one.event ? null : this.data.lines[one.line];
    this.range.value = this.step;
    this.where.textContent = "step " + (this.step + 1) + " of " + this.steps.length +
      (this.data.sampled ? ", warp " + one.warp : "") +
      ", phase " + one.phase + ", after " + plural(one.barriers, "barrier");
    this.code.replaceChildren(make("small", {}, [line ? line.file + ":" + line.line : "no line of this warp"]),
      line ? line.text || "(source not known)" : "copies and tensor cores go on by themselves");
    this.sentence(one, memory, lanes);
    this.drawMaps(one);
    this.drawStages(one);
    var access = memory && one.width > 0;
    this.units.replaceChildren();
    this.list.replaceChildren();
    if (access) {
      var shared = memory.space === "shared", drawn = this.served(one);
      this.units.setAttribute("data-drawn", drawn.length);
      this.units.setAttribute("data-units", one.units);
      this.units.appendChild(shared ? this.banks(drawn) : this.sectors(memory, drawn));
      this.table(one, memory, lanes, shared);
    }
  };

  /* The sectors or wavefronts in which a request is served. */
  Trace.prototype.served = function (one) {
    var shared = this.data.memories[one.memory].space === "shared";
    return shared ? wavefrontsOf(lanesOf(one), one.width) : sectorsOf(lanesOf(one), one.width);
  };

  Trace.prototype.sentence = function (one, memory, lanes) {
    var verb = /load/.test(one.operation) ? " loads from " : /store/.test(one.operation) ? " stores to " : " adds to ";
    var who = "Warp " + one.warp, text, verdict = null;
    if (one.event) {
      text = this.happens(one.tick);
    } else if (one.area && memory) {
      text = "Lane " + lanes[0].lane + " of warp " + one.warp + " starts a TMA copy of " + one.area[2] + " rows of " +
        one.area[1] + " elements, from " + this.element(memory, one.area[0] * memory.element) + ": " + one.units + " bytes.";
    } else if (one.width === 0) {
      var times = lanes[0].address;
      text = who + ": " + (one.operation === "fma" ? plural(times, "multiply-add") + " in each of " + plural(lanes.length, "lane")
        : plural(times, "instruction") + " of tensor cores (" + one.operation + ")") + "." +
        (one.operands ? " They read " + one.operands.map(function (part) {
          return part[1] + " bytes from byte " + part[0];
        }).join(" and ") + " of shared memory." : "");
    } else {
      var unit = memory.space === "shared" ? "wavefront" : "sector";
      text = who + verb + memory.name + ": " + plural(lanes.length, "lane") + ", " + one.width + " bytes each, " +
        plural(one.units, unit) + ". ";
      verdict = one.units > one.ideal
        ? make("b", { "class": "bad" }, ["At best: " + one.ideal + "."])
        : make("b", { "class": "good" }, ["That is the minimum."]);
    }
    this.say.replaceChildren.apply(this.say, verdict ? [text, verdict] : [text]);
  };

  /* The numbers of A, B and C among the memories, and their common scale, if they are those of a product. */
  Trace.prototype.product = function () {
    var found = { A: -1, B: -1, C: -1 }, sides = {};
    this.data.memories.forEach(function (memory, number) {
      if (memory.space === "shared" || !memory.columns || found[memory.name] !== -1) { return; }
      found[memory.name] = number;
      sides[memory.name] = [Math.ceil(memory.bytes / memory.element / memory.columns), memory.columns];
    });
    var a = sides.A, b = sides.B, c = sides.C;
    if (!a || !b || !c || a[0] !== c[0] || b[1] !== c[1] || a[1] !== b[0]) { return null; }
    found.scale = Math.min(12, Math.min(480, this.space() - 24) / (a[1] + c[1]), 320 / (b[0] + c[0]));
    return found;
  };

  /* Each matrix and each array small, A on the left of C and B above it as in a product, with what this warp accesses now, and before in this phase. */
  Trace.prototype.drawMaps = function (now) {
    var self = this, trace = this.data, figures = [], product = this.product(), parts = {};
    trace.memories.forEach(function (memory, number) {
      var shared = memory.space === "shared", elements = Math.floor(memory.bytes / memory.element);
      var columns = memory.columns || (shared ? 128 / memory.element : elements), rows = Math.ceil(elements / columns);
      // Mbarriers are no data.
      if (!elements || (shared && !memory.columns && memory.element === 8)) { return; }
      var side = self.space() < 620 ? 92 : 132, scale = Math.min(12, side / Math.max(columns, rows)), width = Math.max(24, columns * scale), height = Math.max(8, rows * scale);
      var isPart = product !== null && product[memory.name] === number;
      if (isPart) { width = columns * product.scale; height = rows * product.scale; }
      var paths = { before: "", now: "" }, digits = function (value) { return Math.round(value * 100) / 100; };
      var mark = function (element, count, down, kind) {
        while (count > 0) {
          var col = element % columns, here = Math.min(count, columns - col), y = Math.floor(element / columns);
          var across = digits(Math.max(1, here / columns * width)), deep = digits(Math.max(1, down / rows * height));
          paths[kind] += "M" + digits(col / columns * width) + " " + digits(y / rows * height) + "h" + across + "v" + deep + "h-" + across + "z";
          element += here;
          count -= here;
        }
      };
      var paint = function (one, kind) {
        (shared && one.operands || []).forEach(function (part) {
          if (part[0] < memory.offset || part[0] >= memory.offset + memory.bytes) { return; }
          mark((part[0] - memory.offset) / memory.element, part[1] / memory.element, 1, kind);
        });
        if (one.memory !== number) { return; }
        if (one.area && one.memory === number) { mark(one.area[0], one.area[1], one.area[2], kind); return; }
        if (!one.width) { return; }
        one.lanes.forEach(function (run) {
          var first = (run[2] - memory.offset) / memory.element, each = Math.max(1, one.width / memory.element);
          if (run[3] === one.width) { mark(first, run[1] * each, 1, kind); return; }
          for (var i = 0; i < (run[3] === 0 ? 1 : run[1]); i++) { mark(first + i * run[3] / memory.element, each, 1, kind); }
        });
      };
      if (!trace.sampled) {
        self.steps.slice(0, self.step).forEach(function (one) { if (!one.event && self.part(one) === self.part(now)) { paint(one, "before"); } });
      }
      paint(now, "now");
      var title = memory.name + (memory.columns ? ", " + rows + " x " + columns : ", " + memory.bytes + " bytes");
      var cells = [rect(0, 0, width, height, "cell")];
      ["before", "now"].forEach(function (kind) { if (paths[kind]) { cells.push(svg("path", { d: paths[kind], "class": kind })); } });
      var figure = make("figure", isPart ? { "class": "of-" + memory.name } : {}, [
        drawing(width, height, title + (now.memory === number ? ", accessed in this step" : ""), cells), make("figcaption", {}, [title])
      ]);
      if (isPart) { parts[memory.name] = figure; } else { figures.push(figure); }
    });
    if (product) { figures.unshift(make("div", { "class": "product" }, [parts.B, parts.A, parts.C])); }
    this.maps.replaceChildren.apply(this.maps, figures);
  };

  Trace.prototype.space = function () { return Math.max(300, this.root.clientWidth - 32); };

  /* Sectors: eight words each, with the lanes that use them. */
  Trace.prototype.sectors = function (memory, sectors) {
    var self = this, wide = this.space(), each = 176, across = Math.max(1, Math.min(4, Math.floor(wide / (each + 12))));
    var cell = Math.floor((wide / across - 12) / 8), high = 42, down = Math.ceil(sectors.length / across);
    cell = Math.min(cell, 30);
    var parts = [];
    sectors.forEach(function (sector, i) {
      var x = (i % across) * (8 * cell + 12), y = Math.floor(i / across) * high;
      parts.push(words(self.element(memory, sector.number * SECTOR) + " \u2026", x, y + 11, "quiet", "start"));
      for (var word = 0; word < 8; word++) {
        var lanes = sector.words[word];
        parts.push(rect(x + word * cell, y + 15, cell, 19, lanes ? "now" : "cell"));
        if (lanes) { parts.push(words(lanes.length > 1 ? lanes[0] + "+" : lanes[0], x + word * cell + cell / 2, y + 28, "on")); }
      }
    });
    return make("div", {}, [
      make("h3", {}, [plural(sectors.length, "sector") + " of 32 bytes, and the lane that accesses each word"]),
      drawing(across * (8 * cell + 12), down * high, sectors.length + " sectors", parts)
    ]);
  };

  /* Banks: a column each, a row for each wavefront. Narrow pages show them in two halves. */
  Trace.prototype.banks = function (fronts) {
    var wide = this.space() - 6, across = wide < 620 ? 16 : 32, cell = Math.min(26, Math.floor((wide - 30) / across));
    var parts = [], y = 0;
    for (var half = 0; half < BANKS; half += across) {
      for (var bank = half; bank < half + across; bank++) {
        parts.push(words(bank, 30 + (bank - half + 0.5) * cell, y + 10, "quiet"));
      }
      y += 14;
      fronts.forEach(function (front, number) {
        parts.push(words(number + 1, 24, y + 13, "quiet", "end"));
        for (var bank = half; bank < half + across; bank++) {
          var entry = front[bank], x = 30 + (bank - half) * cell;
          parts.push(rect(x, y, cell, 18, entry ? "now" : "cell"));
          if (entry) { parts.push(words(entry.lanes[0] + (entry.lanes.length > 1 ? "+" : ""), x + cell / 2, y + 13, "on")); }
        }
        y += 18;
      });
      y += 8;
    }
    return make("div", {}, [
      make("h3", {}, [plural(fronts.length, "wavefront") + ": a column for each bank, and the lane that it serves (+: others read the same word)"]),
      drawing(30 + across * cell, y, fronts.length + " wavefronts over 32 banks", parts)
    ]);
  };

  Trace.prototype.table = function (one, memory, lanes, shared) {
    var self = this, head = ["lane", "element", "byte", shared ? "bank" : "sector"];
    var rows = lanes.map(function (lane) {
      var unit = shared ? Math.floor(lane.address / WORD) % BANKS : Math.floor(lane.address / SECTOR);
      return [lane.lane, self.element(memory, lane.address), lane.address, unit];
    });
    this.list.replaceChildren(make("table", {}, [make("tr", {}, head.map(function (text) { return make("th", {}, [text]); }))]
      .concat(rows.map(function (row) { return make("tr", {}, row.map(function (text) { return make("td", {}, [String(text)]); })); }))));
  };

  /* What happens to a stage, as a sentence. */
  Trace.prototype.happens = function (tick) {
    var data = this.data.stages, event = data.ticks[tick];
    return "Stage " + event.stage + ": " + event.what + ". " + plural(data.in_flight[tick], "stage") + " in use.";
  };

  /* The stages of the pipeline: a row each, an event for each step to the right. The cursor is where this step is. */
  Trace.prototype.drawStages = function (now) {
    var data = this.data.stages, self = this;
    if (!data) { return; }
    var focused = this.stages.contains(document.activeElement);
    var count = data.ticks.length, left = 58, row = 24, cell = Math.max(9, Math.min(26, (this.space() - left - 8) / count));
    var rows = data.starts.length, width = left + count * cell + 4, height = rows * row + 74, parts = [];
    data.starts.forEach(function (start, stage) {
      parts.push(words("stage " + stage, left - 6, stage * row + 16, "", "end"));
      parts.push(rect(left, stage * row + 2, count * cell, row - 4, "cell"));
    });
    data.spans.forEach(function (span) {
      parts.push(rect(left + span.from * cell, span.stage * row + 2, Math.max(2, (span.to - span.from) * cell), row - 4, span.state));
    });
    var top = rows * row + 16, most = Math.max(1, rows), y = function (value) { return top + 40 * (1 - value / most); };
    parts.push(words("in use", left - 6, top + 24, "", "end"), words(most, left - 6, top + 6, "quiet", "end"), words(0, left - 6, top + 42, "quiet", "end"));
    parts.push(rect(left, top, count * cell, 40, "cell"));
    var path = "M" + left + "," + y(0);
    data.in_flight.forEach(function (value, i) { path += "V" + y(value) + "h" + cell; if (i === 0) { path = "M" + left + "," + y(value) + "h" + cell; } });
    parts.push(svg("path", { d: path, "class": "flight" }));
    var x = left + (now.tick + 0.5) * cell;
    parts.push(svg("line", { x1: x, x2: x, y1: 0, y2: top + 44, "class": "cursor" }));
    var by = data.filled_by === "tma" ? "TMA copies" : "cp.async, as thread 0 sees it";
    var box = make("div", { "class": "wide", tabindex: 0, role: "group", "aria-label": "stages of the pipeline over time: the same steps, by the same keys" },
      [drawing(width, height, plural(rows, "stage") + " over " + count + " events", parts)]);
    box.addEventListener("keydown", function (event) { self.key(event); });
    box.addEventListener("click", function (event) {
      var drawn = box.querySelector("svg").getBoundingClientRect();
      var tick = Math.floor(((event.clientX - drawn.left) * width / drawn.width - left) / cell);
      var there = self.steps.findIndex(function (one) { return one.tick >= tick; });
      self.go(there < 0 ? Infinity : there);
    });
    var key = function (kind, text) { return make("span", {}, [make("i", { "class": kind }), text]); };
    this.stages.className = "stages";
    this.stages.replaceChildren(
      make("h3", {}, ["The pipeline's stages over time (" + by + ")"]), box,
      make("div", { "class": "key" }, [key("filling", "copies in flight"), key("full", "full"), key("read", "being read")]),
      make("p", { "class": "say" }, ["Event " + (now.tick + 1) + " of " + count + ". " + this.happens(now.tick)]),
      make("p", { "class": "hint" }, ["From left to right is the order in which the CPU ran it, which is one that CUDA allows. Its width is not time."])
    );
    if (focused) { this.stages.querySelector(".wide").focus(); }
    var shown = this.stages.querySelector(".wide");
    shown.scrollLeft = Math.max(0, x - shown.clientWidth / 2);
  };

  /* What all warps of the block did. */
  Trace.prototype.totals = function () {
    var head = ["all warps of the block", "requests", "served in", "at best"];
    var rows = this.data.totals.map(function (one) {
      var unit = /tma/.test(one.operation) ? " bytes" : /shared/.test(one.operation) ? " wavefronts" : " sectors";
      var access = one.units > 0, cells = [one.operation, one.requests, access ? one.units + unit : "", access ? one.ideal : ""];
      return make("tr", {}, cells.map(function (text, i) {
        return make("td", i === 2 && one.units > one.ideal ? { "class": "bad" } : {}, [String(text)]);
      }));
    });
    return make("div", { "class": "wide" }, [make("table", { "class": "totals" },
      [make("tr", {}, head.map(function (text) { return make("th", {}, [text]); }))].concat(rows))]);
  };

  /* With nothing in focus, the arrow keys step the picture that is in view, before a book turns its pages by them. */
  function watchKeys() {
    document.addEventListener("keydown", function (event) {
      var other = "a, button, input, select, textarea, summary, [tabindex='0']";
      if (!/^Arrow(Left|Right)$/.test(event.key) || event.target.closest(other)) { return; }
      var roots = Array.prototype.filter.call(document.querySelectorAll(".trace"), function (root) {
        var box = root.trace.figure.getBoundingClientRect();
        return box.bottom > 0 && box.top < window.innerHeight;
      });
      if (roots.length > 0) { roots[0].trace.key(event); }
    }, true);
  }

  function begin() {
    watchKeys();
    Array.prototype.forEach.call(document.querySelectorAll(".trace"), function (root) {
      root.trace = new Trace(root, JSON.parse(root.querySelector("script").textContent));
    });
  }
  if (document.readyState === "loading") { document.addEventListener("DOMContentLoaded", begin); } else { begin(); }
}());
