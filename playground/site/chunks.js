// Chunks: keyframes store the memory and the files in chunks. A chunk has one of three forms:
//
//	bytes             all bytes
//	of, at, lines     another chunk, and the lines that differ from it
//	from, ops, rest   pieces of chunks of the first form, and the bytes between the pieces; rest
//	                  has their words that are not zero
//
// The third form is for data that has moved: packets and captures contain the bytes of an uploaded
// file, too. Like rsync, Chunks finds such data by hashes of a few bytes. Most of the other memory
// that changes is zero.

export const size = 16 << 10; // bytes of a chunk
const line = 64, words = line / 4;
const mostLines = size / 4, mostRest = size / 2; // bytes; a chunk with more of them has the first form
const shortest = 48; // bytes of a piece
// Chunks stores the hashes of marks only. A mark is a place whose hash begins with 6 zero bits, so
// marks move with the data. Repetitive data may have no marks: then, after spread bytes, Chunks
// stores the hashes of row places in a row.
const spread = 512, row = 8;
const keyBits = 20;
const overhead = 600; // bytes that a chunk needs besides its data, approximately

export const zeros = { bytes: new Uint8Array(size), uses: 1 };
export const wordsOf = (bytes) => new Uint32Array(bytes.buffer, bytes.byteOffset, bytes.length >> 2);
const viewOf = (bytes) => new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
const bytesOf = (c) => overhead + (c.bytes ?? c.lines ?? c.rest).byteLength
  + ((c.at ?? c.ops)?.byteLength ?? 0) + 8 * (c.from?.length ?? 0);

// Buffers that all chunks share, because allocating them for each chunk is slow.
const filled = new Uint8Array(size), between = new Uint8Array(size), packed = new Uint32Array(size / 4 + size / 128);
const places = new Uint16Array(size / line), lines = new Uint32Array(size / 4);
const ops = new Uint16Array(size);

function same(a, b) {
  if (a.length !== b.length) return false;
  for (let i = 0; i < a.length; i++) if (a[i] !== b[i]) return false;
  return true;
}

/** hash returns a hash of 8 bytes. */
const hash = (a, b) => Math.imul(a ^ 0x9e3779b1, 0x85ebca6b) ^ Math.imul(b, 0xc2b2ae35);
const isMark = (h) => h >>> 26 === 0;
const keyOf = (h) => Math.imul(h, 0x9e3779b1) >>> (32 - keyBits);

/** until returns the first place after i in a at which a differs from b, where i corresponds to j in b. */
function until(a, i, b, j) {
  const end = Math.min(size, size + i - j), shift = j - i;
  while (i + 4 <= end && a.getInt32(i, true) === b.getInt32(i + shift, true)) i += 4;
  while (i < end && a.getUint8(i) === b.getUint8(i + shift)) i++;
  return i;
}

/** since returns the first place from which a equals b up to i, where i corresponds to j in b; at least least. */
function since(a, i, b, j, least) {
  const first = Math.max(least, i - j), shift = j - i;
  while (i - 4 >= first && a.getInt32(i - 4, true) === b.getInt32(i + shift - 4, true)) i -= 4;
  while (i > first && a.getUint8(i - 1) === b.getUint8(i + shift - 1)) i--;
  return i;
}

/** pack returns the nonzero words of between. Before those of each 32 words is a word whose bits say which they are. */
function pack(length) {
  const x = wordsOf(between), end = (length + 3) >> 2;
  between.fill(0, length, 4 * end);
  let to = 0;
  for (let i = 0; i < end; i += 32) {
    const mask = to++, n = Math.min(32, end - i);
    let bits = 0;
    for (let k = 0; k < n; k++) {
      if (x[i + k] === 0) continue;
      bits |= 1 << k;
      packed[to++] = x[i + k];
    }
    packed[mask] = bits;
  }
  return packed.subarray(0, to);
}

/** unpack is the reverse of pack. */
function unpack(words) {
  const x = wordsOf(between);
  for (let i = 0, from = 0; from < words.length; i += 32) {
    const bits = words[from++];
    x.fill(0, i, i + 32);
    for (let left = bits; left !== 0; left &= left - 1) x[i + 31 - Math.clz32(left & -left)] = words[from++];
  }
}

/** fill writes a chunk's bytes. */
export function fill(c, to) {
  if (c.bytes) {
    to.set(c.bytes);
  } else if (c.of) {
    fill(c.of, to);
    const x = wordsOf(to);
    c.at.forEach((at, i) => x.set(c.lines.subarray(i * words, (i + 1) * words), at));
  } else {
    unpack(c.rest);
    let at = 0, rest = 0;
    for (let i = 0; i < c.ops.length; i += 4) {
      const before = c.ops[i], start = c.ops[i + 2], length = c.ops[i + 3];
      to.set(between.subarray(rest, rest + before), at);
      to.set(c.from[c.ops[i + 1]].bytes.subarray(start, start + length), at + before);
      rest += before;
      at += before + length;
    }
    to.set(between.subarray(rest, rest + size - at), at);
  }
  return to;
}

/** Chunks makes chunks, and counts the bytes of those in use. */
export class Chunks {
  bytes = 0;
  // Places in chunks of the first form, by a hash of the bytes there; 10 MB.
  #homes;
  #offsets;

  /** plain returns a chunk with these bytes. It does not search for pieces, because the page waits for its first keyframe. */
  plain(bytes) {
    const x = wordsOf(bytes);
    return x.every((word) => word === 0) ? zeros : { bytes: bytes.slice(), uses: 0 };
  }

  /** make returns a chunk with these bytes. If before, an earlier chunk, has the same bytes, make returns that one. */
  make(bytes, before) {
    const base = before.of ?? before;
    const x = wordsOf(bytes), y = wordsOf(base.bytes ?? fill(base, filled));
    let count = 0;
    for (let i = 0; i < x.length; i++) {
      if (x[i] === y[i]) continue;
      if ((count + 1) * line > mostLines) return this.#find(bytes);
      i -= i % words;
      places[count] = i;
      for (let k = 0; k < words; k++) lines[count * words + k] = x[i + k];
      count++;
      i += words - 1;
    }
    if (count === 0) return base;
    const at = places.subarray(0, count), differs = lines.subarray(0, count * words);
    if (before.of && same(at, before.at) && same(differs, before.lines)) return before;
    return { of: base, at: at.slice(), lines: differs.slice(), uses: 0 };
  }

  /** find returns a chunk of pieces, or one of the first form if most of the bytes are new. */
  #find(bytes) {
    this.#homes ??= new Array(1 << keyBits).fill(null);
    this.#offsets ??= new Uint16Array(1 << keyBits);
    const homes = this.#homes, offsets = this.#offsets;
    const view = viewOf(bytes), x = wordsOf(bytes), from = [];
    let done = 0, count = 0, rest = size;
    for (let i = 0, last = 0; i < x.length - 1; i++) {
      const h = hash(x[i], x[i + 1]);
      if (!isMark(h) && i - last < spread / 4) continue;
      last = i;
      const k = keyOf(h), home = homes[k];
      if (!home?.view) continue;
      const at = 4 * i, there = offsets[k], end = until(view, at, home.view, there);
      const start = end === at ? at : since(view, at, home.view, there, done);
      if (end - start < shortest) continue;
      let index = from.indexOf(home);
      if (index < 0) index = from.push(home) - 1;
      ops[count++] = start - done;
      ops[count++] = index;
      ops[count++] = there + start - at;
      ops[count++] = end - start;
      rest -= end - start;
      done = end;
      i = last = ((end + 3) >> 2) - 1;
    }
    let at = 0, to = 0;
    for (let i = 0; i < count; i += 4) {
      between.set(bytes.subarray(at, at + ops[i]), to);
      to += ops[i];
      at += ops[i] + ops[i + 3];
    }
    between.set(bytes.subarray(at), to);
    const words = pack(rest);
    if (words.byteLength + 2 * count + 8 * from.length > mostRest) return this.#whole(bytes);
    return { from, ops: ops.slice(0, count), rest: words.slice(), uses: 0 };
  }

  #whole(part) {
    const bytes = part.slice(), view = viewOf(bytes), chunk = { bytes, view, uses: 0 };
    for (let i = 0, last = 0; i <= size - 8; i++) {
      const h = hash(view.getInt32(i, true), view.getInt32(i + 4, true));
      if (!isMark(h) && i - last < spread) continue;
      if (isMark(h) || i - last === spread + row - 1) last = i;
      const k = keyOf(h);
      this.#homes[k] = chunk;
      this.#offsets[k] = i;
    }
    return chunk;
  }

  use(c) {
    if (c.uses++ > 0) return;
    this.bytes += bytesOf(c);
    for (const other of c.from ?? (c.of ? [c.of] : [])) this.use(other);
  }

  leave(c) {
    if (--c.uses > 0) return;
    this.bytes -= bytesOf(c);
    for (const other of c.from ?? (c.of ? [c.of] : [])) this.leave(other);
    c.bytes = c.view = undefined; // its places may still be in the table
  }
}
