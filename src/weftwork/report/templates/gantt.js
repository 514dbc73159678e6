"use strict";
// The pipeline on a canvas. Numbers come packed (weftwork.report.figures.gantt); only what is in view is drawn.
for (const chart of document.querySelectorAll(".gantt")) {
  const meta = JSON.parse(chart.dataset.meta);
  const canvas = chart.querySelector("canvas");
  const where = chart.querySelector(".where");
  const pen = canvas.getContext("2d");
  const CODES = 32, NOTHING = CODES - 1, AXIS = 22, TOP = meta.top, KINDS = meta.kinds.length;

  const unpack = (text) => {
    const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
    let place = 0;
    const next = () => {
      let value = 0, weight = 1, byte;
      do { byte = bytes[place++]; value += (byte & 127) * weight; weight *= 128; } while (byte > 127);
      return value;
    };
    return meta.rows.map((name) => {
      let at = next();
      const blocks = next(), count = next();
      const row = { name, micro: new Int32Array(blocks), virtual: new Int32Array(blocks), pass: new Uint8Array(blocks),
        first: new Int32Array(blocks + 1), start: new Float64Array(count + 1), kind: new Uint8Array(count) };
      for (let b = 0; b < blocks; b++) {
        row.micro[b] = next() - 1; row.virtual[b] = next() - 1; row.pass[b] = next();
        row.first[b + 1] = row.first[b] + next();
      }
      for (let p = 0; p < count; p++) {
        const value = next();
        row.kind[p] = value % CODES; row.start[p] = at; at += Math.floor(value / CODES);
      }
      row.start[count] = at;
      return row;
    });
  };
  const rows = unpack(chart.querySelector("script").textContent);
  const digits = String(rows.reduce((most, row) => row.micro.reduce((a, b) => Math.max(a, b), most), 0)).length;

  // the last place whose value is not above `wanted`
  const lastAt = (value, count, wanted) => {
    let low = 0, high = count - 1;
    while (low < high) { const middle = (low + high + 1) >> 1; if (value(middle) <= wanted) low = middle; else high = middle - 1; }
    return low;
  };
  const three = (value) => Number(value.toPrecision(3)).toLocaleString("en", { maximumFractionDigits: 3 });
  const time = (units) => {
    const ps = units * meta.unit;
    for (const [factor, name] of [[1e12, "s"], [1e9, "ms"], [1e6, "\u00b5s"], [1e3, "ns"]]) {
      if (Math.abs(ps) >= factor * 0.9995) return `${three(ps / factor)}\u202f${name}`;
    }
    return ps < 1 ? "0" : `${three(ps)}\u202fps`;
  };

  let from = 0, to = meta.end, asked = false, colours = [], ink = "", soft = "", panel = "", warn = "";
  const readColours = () => {
    const style = getComputedStyle(document.documentElement);
    const of = (name) => style.getPropertyValue(name).trim();
    colours = meta.kinds.map((_, place) => of(`--k${place}`));
    [ink, soft, panel, warn] = [of("--ink"), of("--soft"), of("--panel"), of("--warn-line")];
  };

  // shares of one pixel, or of a block whose pieces are narrower than that, as heights
  const stack = (sums, x, y, width, height) => {
    let whole = 0, top = y;
    for (let k = 0; k < KINDS; k++) whole += sums[k];
    for (let k = 0; k < KINDS && whole > 0; k++) {
      if (!sums[k]) continue;
      const part = height * sums[k] / whole;
      pen.fillStyle = colours[k];
      pen.fillRect(x, top, width, part);
      top += part;
    }
  };
  const drawRow = (row, y, height, width) => {
    const scale = width / (to - from), blocks = row.micro.length;
    const startOf = (b) => row.start[row.first[b]];
    const pixel = new Float64Array(16), block = new Float64Array(16);
    let column = -1;
    const flush = () => {
      if (column >= 0) { stack(pixel, column, y, 1, height); pixel.fill(0); column = -1; }
    };
    for (let b = lastAt(startOf, blocks, from); b < blocks && startOf(b) < to; b++) {
      const first = row.first[b], end = row.first[b + 1];
      const x = (row.start[first] - from) * scale, wide = (row.start[end] - row.start[first]) * scale;
      if (x + wide < 0) continue;
      if (wide < 1.5) {
        if (Math.floor(x) !== column) { flush(); column = Math.floor(x); }
        for (let p = first; p < end; p++) pixel[row.kind[p]] += row.start[p + 1] - row.start[p];
        continue;
      }
      flush();
      if (wide / (end - first) < 1.5 && end - first > 1) {
        block.fill(0);
        for (let p = first; p < end; p++) block[row.kind[p]] += row.start[p + 1] - row.start[p];
        stack(block, x, y, wide, height);
      } else {
        for (let p = lastAt((place) => row.start[first + place], end - first, from) + first; p < end; p++) {
          const begin = (row.start[p] - from) * scale;
          if (begin > width) break;
          if (row.kind[p] === NOTHING) continue;
          pen.fillStyle = colours[row.kind[p]];
          pen.fillRect(Math.max(begin, -1), y, Math.min((row.start[p + 1] - from) * scale, width + 1) - Math.max(begin, -1), height);
        }
      }
      if (row.micro[b] < 0 || wide < 4) continue;
      pen.fillStyle = panel;
      pen.fillRect(x, y, 0.75, height);
      const seen = Math.max(x, 0), room = Math.min(x + wide, width) - seen, text = String(row.micro[b]);
      const idle = row.pass[b] === 0 || row.kind[first] >= KINDS - 5; // waiting has no number
      if (height >= 11 && room > 7 * digits + 5 && !idle) {
        pen.font = `600 ${Math.min(12, height - 2)}px system-ui, sans-serif`;
        pen.textAlign = "center";
        pen.lineWidth = 2.5;
        pen.strokeStyle = panel;
        pen.strokeText(text, seen + room / 2, y + height / 2 + 0.5);
        pen.fillStyle = ink;
        pen.fillText(text, seen + room / 2, y + height / 2 + 0.5);
      }
    }
    flush();
  };
  const drawAxis = (width, top) => {
    const span = (to - from) * meta.unit, wanted = span / Math.max(2, Math.floor(width / 110));
    const base = 10 ** Math.floor(Math.log10(wanted));
    const step = [1, 2, 2.5, 5, 10].map((factor) => factor * base).find((value) => value >= wanted * 0.999) / meta.unit;
    pen.fillStyle = soft;
    pen.font = "12px system-ui, sans-serif";
    for (let tick = Math.ceil(from / step) * step; tick <= to; tick += step) {
      const x = (tick - from) * width / (to - from);
      pen.fillRect(x, top, 1, 4);
      pen.textAlign = x < 24 ? "left" : x > width - 24 ? "right" : "center";
      pen.fillText(time(tick), x, top + 13);
    }
  };
  // faults as bands above the rows, their begins and ends as lines through them; the culprit's name comes first where there is no room for all
  const drawFaults = (width, bottom) => {
    const taken = [];
    for (const [begin, end, text, blamed] of [...meta.faults].sort((a, b) => b[3] - a[3])) {
      const x = (begin - from) * width / (to - from), last = (end - from) * width / (to - from);
      if (last < 0 || x > width) continue;
      const left = Math.max(x, 0), right = Math.min(last, width);
      pen.fillStyle = pen.strokeStyle = blamed ? warn : soft;
      pen.globalAlpha = 0.3; // above the rows only, whose colours have a meaning
      pen.fillRect(left, 0, Math.max(right - left, 1), TOP - 3);
      pen.globalAlpha = 1;
      pen.lineWidth = blamed ? 2 : 1.25;
      pen.setLineDash([5, 3]);
      for (const edge of [x, last]) {
        if (edge < 0 || edge > width) continue;
        pen.beginPath();
        pen.moveTo(edge, 0);
        pen.lineTo(edge, bottom);
        pen.stroke();
      }
      pen.setLineDash([]);
      pen.font = `${blamed ? 600 : 500} 12px system-ui, sans-serif`;
      const wide = Math.min(pen.measureText(text).width, width), start = Math.min(left + 5, width - wide);
      if (taken.some(([a, b]) => start < b + 8 && start + wide > a - 8)) continue;
      taken.push([start, start + wide]);
      pen.fillStyle = ink;
      pen.textAlign = "left";
      pen.fillText(text, start, (TOP - 3) / 2, width);
    }
  };
  const draw = () => {
    asked = false;
    const width = canvas.clientWidth, height = TOP + rows.length * meta.row + AXIS, dots = devicePixelRatio || 1;
    canvas.width = Math.round(width * dots);
    canvas.height = Math.round(height * dots);
    pen.setTransform(dots, 0, 0, dots, 0, 0);
    pen.textBaseline = "middle";
    rows.forEach((row, place) => drawRow(row, TOP + place * meta.row, meta.row - 1.5, width));
    drawFaults(width, TOP + rows.length * meta.row);
    drawAxis(width, TOP + rows.length * meta.row);
  };
  const ask = () => { if (!asked) { asked = true; requestAnimationFrame(draw); } };
  const show = (begin, span) => {
    const wide = Math.min(Math.max(span, 200), meta.end);
    from = Math.min(Math.max(begin, 0), meta.end - wide);
    to = from + wide;
    where.textContent = wide === meta.end ? "drag to move, Ctrl and wheel to zoom" : `${time(from)} to ${time(to)}, ${time(wide)} of ${time(meta.end)}`;
    ask();
  };
  const zoom = (factor, share = 0.5) => { const span = (to - from) * factor; show(from + share * (to - from - span), span); };
  const move = (share) => show(from + share * (to - from), to - from);
  const moves = { in: () => zoom(0.5), out: () => zoom(2), left: () => move(-0.4), right: () => move(0.4), all: () => show(0, meta.end) };
  const keys = { "+": "in", "=": "in", "-": "out", ArrowLeft: "left", ArrowRight: "right", 0: "all", Home: "all" };
  const shareOf = (x) => { const box = canvas.getBoundingClientRect(); return (x - box.left) / box.width; };

  for (const button of chart.querySelectorAll("button")) button.addEventListener("click", moves[button.dataset.do]);
  canvas.addEventListener("keydown", (event) => {
    if (!(event.key in keys)) return;
    event.preventDefault();
    moves[keys[event.key]]();
  });
  canvas.addEventListener("dblclick", (event) => zoom(0.25, shareOf(event.clientX)));
  canvas.addEventListener("wheel", (event) => {
    if (event.ctrlKey || event.metaKey) zoom(1.0015 ** event.deltaY, shareOf(event.clientX));
    else if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) move(event.deltaX / canvas.clientWidth);
    else return;
    event.preventDefault();
  }, { passive: false });

  const held = new Map(); // fingers and mouse buttons that are down
  canvas.addEventListener("pointerdown", (event) => { held.set(event.pointerId, event.clientX); canvas.setPointerCapture(event.pointerId); });
  const release = (event) => held.delete(event.pointerId);
  canvas.addEventListener("pointerup", release);
  canvas.addEventListener("pointercancel", release);
  canvas.addEventListener("pointermove", (event) => {
    const before = held.get(event.pointerId);
    if (before === undefined) { tell(event); return; }
    weftwork.hide();
    const others = [...held].filter(([id]) => id !== event.pointerId).map(([, x]) => x);
    if (others.length) {
      const apart = Math.abs(event.clientX - others[0]);
      if (apart > 4) zoom(Math.abs(before - others[0]) / apart, shareOf((event.clientX + others[0]) / 2));
    } else move((before - event.clientX) / canvas.clientWidth);
    held.set(event.pointerId, event.clientX);
  });
  canvas.addEventListener("pointerleave", weftwork.hide);

  const tell = (event) => {
    const box = canvas.getBoundingClientRect(), row = rows[Math.floor((event.clientY - box.top - TOP) / meta.row)];
    const at = from + shareOf(event.clientX) * (to - from);
    if (!row || at < row.start[0] || at >= row.start[row.kind.length]) { weftwork.hide(); return; }
    const piece = lastAt((place) => row.start[place], row.kind.length, at);
    const block = lastAt((place) => row.first[place], row.micro.length, piece);
    const first = row.first[block], end = row.first[block + 1];
    const what = [row.micro[block] >= 0 ? `micro batch ${row.micro[block]}` : "", row.virtual[block] > 0 ? `virtual stage ${row.virtual[block]}` : "", meta.passes[row.pass[block]]];
    const sums = new Float64Array(16);
    for (let p = first; p < end; p++) sums[row.kind[p]] += row.start[p + 1] - row.start[p];
    const line = (kind, text) => {
      const made = weftwork.node("div", ""), key = weftwork.node("i", "");
      key.style.background = colours[kind] ?? "transparent";
      made.append(key, text);
      return made;
    };
    const name = (kind) => meta.kinds[kind] ?? "nothing recorded";
    const long = (p) => time(row.start[p + 1] - row.start[p]);
    weftwork.show(event, [
      weftwork.node("b", row.name), ...meta.faults.filter(([begin, end]) => at >= begin && at < end).map(([, , text]) => weftwork.node("div", text)), weftwork.node("div", what.filter((text) => text).join(", ")),
      line(row.kind[piece], `${name(row.kind[piece])}: ${long(piece)}, from ${time(row.start[piece])} on`),
      ...(end - first > 1 ? [weftwork.node("div", `all of it, ${time(row.start[end] - row.start[first])}:`),
        ...[...sums.keys()].filter((kind) => sums[kind]).map((kind) => line(kind, `${name(kind)}: ${time(sums[kind])}`))] : []),
    ]);
  };

  canvas.hidden = false;
  chart.querySelector(".keysline").hidden = false;
  const themed = () => { readColours(); ask(); };
  new MutationObserver(themed).observe(document.documentElement, { attributeFilter: ["data-theme"] });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", themed);
  new ResizeObserver(ask).observe(canvas);
  addEventListener("beforeprint", draw);
  readColours();
  draw();
  moves.all();
}
