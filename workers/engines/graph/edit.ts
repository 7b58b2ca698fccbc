/** A graph while it is rewritten: its nodes and weights, and what is made once. */
import type { Attribute, Node, Tensor } from './model.js';
import { ints } from './streams.js';

/** The end of an axis, whatever its length. */
export const farEnd = 2 ** 31 - 1;

export class GraphEdit {
  readonly nodes: Node[] = [];
  readonly initialisers: Map<string, Tensor>;
  readonly #prefix: string;
  /** Values made once: constants, and what several nodes share. */
  readonly #made = new Map<string, string>();

  /** @param prefix of the names of what is added */
  constructor(initialisers: ReadonlyMap<string, Tensor>, prefix: string) {
    this.initialisers = new Map(initialisers);
    this.#prefix = prefix;
  }

  once(key: string, make: () => string): string {
    const name = this.#made.get(key) ?? make();
    this.#made.set(key, name);
    return name;
  }

  /** @returns the name of its output */
  node(
    op: string,
    inputs: readonly string[],
    attributes: Iterable<readonly [string, Attribute]> = [],
    label = this.#prefix,
    output = `${this.#prefix}_${this.nodes.length}`,
  ): string {
    const name = `${label}/${output}`;
    this.nodes.push({ name, op, domain: '', inputs, outputs: [output], attributes: new Map(attributes) });
    return output;
  }

  /** @param from a place, or the name of a value with one; so is `to` */
  slice(name: string, from: string | number, to: string | number, axis: number, output?: string): string {
    const place = (at: string | number) => (typeof at === 'string' ? at : this.constant([at]));
    return this.node('Slice', [name, place(from), place(to), this.constant([axis])], [], undefined, output);
  }

  /** @param dims by default one dimension */
  constant(values: readonly number[], dims?: number[]): string {
    return this.once(`constant ${values.join(' ')} ${dims?.join(' ')}`, () => {
      const name = `${this.#prefix}_constant_${this.#made.size}`;
      this.initialisers.set(name, ints(name, values, dims));
      return name;
    });
  }
}
