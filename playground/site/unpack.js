// The reverse of ../build/pack.go, which describes the format.

const beforeReturn = [0x24, 0x00, 0x20, 0x01, 0x42], beforeWait = [0x23, 0x00, 0x21, 0x01, 0x0d], beforeBlocks = [0x20, 0x00, 0x0e];
const numberSize = 5;

class Unpacker {
  #head = new Uint8Array(0); // until it is complete
  #packed; // the program with differences
  #program;
  #have = 0; // bytes of #packed
  #given = 0;
  #runs; // numbers
  #run = 0;
  #left = 0; // bytes until the next repetition
  #parts; // restores what has arrived
  #ready = 0; // bytes of #program

  transform(bytes, to) {
    if (!this.#program) {
      bytes = this.#begin(bytes);
      if (!bytes) return;
    }
    const before = this.#have;
    this.#fill(bytes);
    this.#program.set(this.#packed.subarray(before, this.#have), before);
    this.#parts.next();
    if (this.#ready > this.#given) to.enqueue(this.#program.subarray(this.#given, this.#ready));
    this.#given = this.#ready;
  }

  flush() {
    if (!this.#program || this.#given < this.#program.length) throw new Error("The program is incomplete. Reload the page.");
  }

  /** begin reads the head and returns what follows. */
  #begin(bytes) {
    const b = new Uint8Array(this.#head.length + bytes.length);
    b.set(this.#head);
    b.set(bytes, this.#head.length);
    this.#head = b;
    if (b.length < 4) return null;
    const end = 4 + new DataView(b.buffer).getUint32(0, true);
    if (b.length < end) return null;
    const numbers = [];
    for (let at = 4; at < end;) {
      const [v, size] = value(b, at);
      numbers.push(v);
      at += size;
    }
    this.#packed = new Uint8Array(numbers[0]);
    this.#program = new Uint8Array(numbers[0]);
    this.#parts = this.#restore(numbers.slice(1, 13));
    this.#runs = numbers.slice(13);
    this.#left = this.#runs[0];
    return b.subarray(end);
  }

  /** fill adds bytes, and repetitions of what precedes them. */
  #fill(bytes) {
    const to = this.#packed;
    for (let at = 0; ;) {
      const n = Math.min(this.#left, bytes.length - at);
      to.set(bytes.subarray(at, at + n), this.#have);
      at += n;
      this.#have += n;
      this.#left -= n;
      if (this.#left > 0 || this.#run + 3 >= this.#runs.length) return;
      const [length, back] = this.#runs.slice(this.#run + 1, this.#run + 3);
      if (length <= back) to.copyWithin(this.#have, this.#have - back, this.#have - back + length);
      else for (let i = this.#have; i < this.#have + length; i++) to[i] = to[i - back];
      this.#have += length;
      this.#run += 3;
      this.#left = this.#runs[this.#run];
    }
  }

  /** restore restores the places, and yields when it needs more bytes. */
  * #restore([functions, functionsEnd, functionCount, code, codeEnd, , list, listEnd, listCount, index, indexEnd, indexEntry]) {
    const b = this.#program;
    if (functionsEnd) {
      yield* this.#wait(functions, functionsEnd);
      for (let i = 0, at = functions, v = 0; i < functionCount; i++) [v, at] = number(b, at, v);
    }
    yield* this.#wait(code, code);
    yield* this.#code(code + beforeReturn.length, codeEnd - numberSize);
    if (listEnd) {
      yield* this.#wait(list, listEnd);
      words(b, list, 8 * listCount, 8);
      const view = new DataView(b.buffer, list);
      for (let i = 0; i < 8 * listCount; i += 8) view.setUint32(view.getUint32(i + 4, true), view.getUint32(i, true), true);
    }
    if (indexEnd) {
      yield* this.#wait(index, indexEnd);
      words(b, index, indexEnd - index, indexEntry);
    }
    for (;;) {
      this.#ready = this.#have;
      yield;
    }
  }

  /** wait waits for the bytes until end. Those before begin are ready. */
  * #wait(begin, end) {
    for (;;) {
      this.#ready = Math.min(this.#have, begin);
      if (this.#have >= end) return;
      yield;
    }
  }

  * #code(at, end) {
    const b = this.#program;
    let ret = 0, wait = 0, block = 0, count = -1; // count: blocks that follow, less 1
    for (;;) {
      const limit = Math.min(end, this.#have - numberSize);
      while (at < limit) {
        if (count >= 0) {
          [block, at] = number(b, at, block);
          count--;
          continue;
        }
        const last = b[at - 1];
        if (last === 0x42 && follows(b, at, beforeReturn)) [ret, at] = number(b, at, ret);
        else if (last === 0x0d && follows(b, at, beforeWait)) [wait, at] = number(b, at, wait);
        else if (last === 0x0e && follows(b, at, beforeBlocks)) {
          const [v, size] = value(b, at);
          at += size;
          count = v;
          block = 0;
        } else at++;
      }
      if (at >= end) return;
      this.#ready = Math.max(this.#ready, at);
      yield;
    }
  }
}

function follows(b, at, bytes) {
  for (let i = 0; i < bytes.length; i++) if (b[at - bytes.length + i] !== bytes[i]) return false;
  return true;
}

/** value reads a LEB128 of at most 5 bytes and returns it with its size. If it is longer, it is 0. */
function value(b, at) {
  for (let size = 0, v = 0, unit = 1; size < numberSize; unit *= 128) {
    const byte = b[at + size++];
    v += (byte & 0x7f) * unit;
    if (byte < 0x80) return [v, size];
  }
  return [0, numberSize];
}

/** number restores a LEB128 from the difference to the last one, and returns it and what follows. */
function number(b, at, last) {
  const [difference, size] = value(b, at);
  if (b[at + size - 1] >= 0x80) return [last, at + size];
  const v = (difference + last) % 128 ** size;
  for (let k = 0, rest = v; k < size; k++, rest = Math.floor(rest / 128)) b[at + k] = (b[at + k] & 0x80) | (rest % 128);
  return [v, at + size];
}

/** words restores words from their differences to those that are so many bytes before. */
function words(b, begin, size, before) {
  const view = new DataView(b.buffer, begin, size);
  for (let i = before; i < size; i += 4) view.setUint32(i, view.getUint32(i, true) + view.getUint32(i - before, true), true);
}

/** unpack is a stream from a packed program, after its gzip, to the program. */
export const unpack = () => new TransformStream(new Unpacker());
