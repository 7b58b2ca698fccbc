/** Programs that make a request for speech, or repeat a conversation. */

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

/** By the language, as people write it. */
export type Code = Readonly<Record<'curl' | 'Node' | 'Python', string>>;

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
    Node: `\
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
    Python: `\
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

/** A frame of a WebSocket's client, and when it was sent. */
export interface SentFrame {
  readonly atMs: number;
  readonly frame: Readonly<Record<string, unknown>>;
}

/** A script does not repeat that nothing happened. */
const pauseMsMax = 2_000;

interface ConversationOptions extends Pick<CodeOptions, 'serviceUrl' | 'key'> {
  readonly sent: readonly SentFrame[];
  /** The ending of the files with audio, by the context. */
  readonly extensions: Readonly<Record<string, string>>;
}

/** For Node, with nothing installed: sends the same frames with the same pauses, and keeps the audio of each context. */
export const conversationCode = (options: ConversationOptions): string => {
  const { key = 'YOUR_API_KEY', extensions, sent, serviceUrl } = options;
  let lastMs = sent[0]?.atMs ?? 0;
  const open = new Set<unknown>();
  const lines: string[] = [];
  for (const { atMs, frame } of sent) {
    const id = frame['context_id'];
    if ('start_context' in frame) open.add(id);
    // The list was cleared meanwhile: its start is gone.
    else if (!open.has(id)) continue;
    if ('close_context' in frame || 'cancel_context' in frame) open.delete(id);
    lines.push(`  [${Math.round(Math.min(atMs - lastMs, pauseMsMax))}, ${JSON.stringify(frame)}],`);
    lastMs = atMs;
  }
  for (const id of open) lines.push(`  [0, ${JSON.stringify({ close_context: true, context_id: id })}],`);
  return `\
import { writeFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';

// The pause before each frame in milliseconds, and the frame.
const frames = [
${lines.join('\n')}
];
const extensions = ${JSON.stringify(extensions)};
const audio = {};
let open = frames.filter(([, frame]) => frame.start_context).length;

const socket = new WebSocket(${JSON.stringify(`${serviceUrl.replace(/^http/, 'ws')}/v1/tts/ws`)}, {
  headers: { 'x-api-key': ${JSON.stringify(key)} },
});
socket.addEventListener('message', async ({ data }) => {
  const { audio_chunk, context_closed, context_id: id, error } = JSON.parse(data);
  if (audio_chunk) (audio[id] ??= []).push(Buffer.from(audio_chunk, 'base64'));
  else console.log(data);
  if (error?.startsWith('INVALID')) process.exit(1);
  if (!context_closed) return;
  if (audio[id]) await writeFile(\`\${id}.\${extensions[id]}\`, Buffer.concat(audio[id]));
  open -= 1;
  if (open === 0) socket.close();
});
socket.addEventListener('error', () => console.error('the connection failed'));
await new Promise((resolve) => socket.addEventListener('open', resolve));
for (const [pauseMs, frame] of frames) {
  await sleep(pauseMs);
  socket.send(JSON.stringify(frame));
}
`;
};
