/** Programs that make a request for speech. */

/** A body of `POST /v1/tts/stream`. */
export type SpeechBody = Readonly<Record<string, unknown>>;

export interface CodeOptions {
  /** Without a slash at the end. */
  readonly serviceUrl: string;
  readonly request: SpeechBody;
  /** Absent: a placeholder. */
  readonly key?: string;
  /** Where the audio goes. */
  readonly file?: string;
}

export interface Code {
  readonly curl: string;
  readonly node: string;
  readonly python: string;
}

/** For a POSIX shell. */
const quoted = (text: string): string => `'${text.replaceAll("'", String.raw`'\''`)}'`;

const indented = (text: string, spaces: number): string => text.replaceAll('\n', `\n${' '.repeat(spaces)}`);

const javaScript = (value: unknown): string =>
  JSON.stringify(value, null, 2).replaceAll(/^( *)"([a-z_]+)":/gm, '$1$2:');

const pythonWords: Readonly<Record<string, string>> = { true: 'True', false: 'False', null: 'None' };

/** JSON's strings and numbers are Python's; its three words are not. */
const python = (value: unknown): string =>
  JSON.stringify(value, null, 4).replaceAll(
    /"(?:[^"\\]|\\.)*"|\b(?:true|false|null)\b/g,
    (token) => pythonWords[token] ?? token,
  );

/** Each program reads the audio as it streams. */
export const codeFor = (options: CodeOptions): Code => {
  const { file = 'speech.mp3', key = 'YOUR_API_KEY', request } = options;
  const url = `${options.serviceUrl}/v1/tts/stream`;
  return {
    curl: `\
curl -sN ${quoted(url)} \\
  -H ${quoted(`x-api-key: ${key}`)} -H 'content-type: application/json' \\
  -d ${quoted(JSON.stringify(request))} |
  sed -n 's/.*"audio_chunk":"\\([^"]*\\)".*/\\1/p' |
  while read -r chunk; do printf %s "$chunk" | base64 -d; done > ${file}
`,
    node: `\
import { writeFile } from 'node:fs/promises';

const response = await fetch(${JSON.stringify(url)}, {
  method: 'POST',
  headers: { 'x-api-key': ${JSON.stringify(key)}, 'content-type': 'application/json' },
  body: JSON.stringify(${indented(javaScript(request), 2)}),
});
if (!response.ok) throw new Error(\`\${response.status} \${await response.text()}\`);

const audio = [];
let pending = '';
for await (const text of response.body.pipeThrough(new TextDecoderStream())) {
  const records = (pending + text).split('\\n\\n');
  pending = records.pop();
  for (const record of records) {
    const { type, audio_chunk, words } = JSON.parse(record.slice('data: '.length));
    if (type === 'audio') audio.push(Buffer.from(audio_chunk, 'base64'));
    else console.log(words.join(' '));
  }
}
await writeFile(${JSON.stringify(file)}, Buffer.concat(audio));
`,
    python: `\
import base64, json, urllib.request

request = urllib.request.Request(
    ${JSON.stringify(url)},
    data=json.dumps(${indented(python(request), 4)}).encode(),
    headers={"x-api-key": ${JSON.stringify(key)}, "content-type": "application/json"},
)
with urllib.request.urlopen(request) as response, open(${JSON.stringify(file)}, "wb") as audio:
    for line in response:
        if line.startswith(b"data: "):
            record = json.loads(line[6:])
            if record["type"] == "audio":
                audio.write(base64.b64decode(record["audio_chunk"]))
            else:
                print(*record["words"])
`,
  };
};
