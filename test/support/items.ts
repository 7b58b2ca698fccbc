/** The items of a 422 body, written down from the contract, and not with the code that they judge. */
export type Loc = readonly (string | number)[];
export interface Item {
  readonly type: string;
  readonly loc: Loc;
  readonly msg: string;
  readonly input?: unknown;
  readonly ctx?: unknown;
}

export const B: Loc = ['body'];
export const RF: Loc = ['body', 'response_format'];

export const item = (type: string, loc: Loc, msg: string, input: unknown, ctx?: unknown): Item => ({
  type,
  loc,
  msg,
  input,
  ...(ctx === undefined ? {} : { ctx }),
});
/** Bytes of what the client sent that one 422 quotes. */
const QUOTED_BYTES = 100;

/** The items as an answer has them: names, and then inputs, as far as there is room for them. */
export const answered = (items: readonly Item[]): Item[] => {
  let left = QUOTED_BYTES;
  const named = items.map((each) => {
    if (each.type !== 'extra_forbidden') return each;
    const name = String(each.loc.at(-1));
    let shown = '';
    for (const character of name) {
      if (Buffer.byteLength(character) > left) break;
      left -= Buffer.byteLength(character);
      shown += character;
    }
    return { ...each, loc: [...each.loc.slice(0, -1), shown === name ? name : `${shown}…`] };
  });
  return named.map(({ input, ...each }) => {
    const bytes = Buffer.byteLength(JSON.stringify(input));
    if (bytes > left) return each;
    left -= bytes;
    const { ctx, ...rest } = each;
    return { ...rest, input, ...(ctx === undefined ? {} : { ctx }) };
  });
};

export const missing = (loc: Loc, input: unknown) => item('missing', loc, 'Field required', input);
export const noDictionary = (loc: Loc, v: unknown) =>
  item(
    'model_attributes_type',
    loc,
    'Input should be a valid dictionary or object to extract fields from',
    v,
  );
export const noString = (loc: Loc, v: unknown) =>
  item('string_type', loc, 'Input should be a valid string', v);
export const extra = (loc: Loc, v: unknown) =>
  item('extra_forbidden', loc, 'Extra inputs are not permitted', v);
export const boolParsing = (loc: Loc, v: unknown) =>
  item('bool_parsing', loc, 'Input should be a valid boolean, unable to interpret input', v);
export const boolType = (loc: Loc, v: unknown) =>
  item('bool_type', loc, 'Input should be a valid boolean', v);
export const ge = (loc: Loc, v: unknown, bound = 0.5) =>
  item('greater_than_equal', loc, `Input should be greater than or equal to ${bound}`, v, { ge: bound });
export const le = (loc: Loc, v: unknown, bound = 3) =>
  item('less_than_equal', loc, `Input should be less than or equal to ${bound}`, v, { le: bound });
export const floatParsing = (loc: Loc, v: unknown) =>
  item('float_parsing', loc, 'Input should be a valid number, unable to parse string as a number', v);
export const floatType = (loc: Loc, v: unknown) =>
  item('float_type', loc, 'Input should be a valid number', v);
export const intFromFloat = (loc: Loc, v: unknown) =>
  item('int_from_float', loc, 'Input should be a valid integer, got a number with a fractional part', v);
export const intParsing = (loc: Loc, v: unknown) =>
  item('int_parsing', loc, 'Input should be a valid integer, unable to parse string as an integer', v);
export const intType = (loc: Loc, v: unknown) => item('int_type', loc, 'Input should be a valid integer', v);
export const value = (loc: Loc, message: string, v: unknown) =>
  item('value_error', loc, `Value error, ${message}`, v, { error: {} });
export const unsupported = (name: string) =>
  value([...RF, 'encoding'], `Unsupported audio encoding: ${name}`, name);
export const jsonInvalid = (position: number | null, error: string) =>
  item('json_invalid', position === null ? B : [...B, position], 'JSON decode error', {}, { error });
/** In the parser's words. */
export const notJson = (position: number, fault: string) =>
  jsonInvalid(position, `${fault} in JSON at position ${position} (line 1 column ${position + 1})`);
export const unexpectedToken = (token: string) => jsonInvalid(null, `Unexpected token '${token}'`);
export const unexpectedEnd = jsonInvalid(null, 'Unexpected end of JSON input');
