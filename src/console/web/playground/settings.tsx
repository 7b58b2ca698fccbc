/** The choices of a speech request, in both tabs. */
import { resolveFormat, specifiedEncodings, type AudioFormat, type Encoding } from '../../../api/formats.js';
import { DEFAULT_TEMPERATURE } from '../../../api/speech-settings.js';
import type { VoiceView } from '../../contract.js';
import { formatNumber } from '../format.js';
import { Choice, Field } from '../parts/form.js';

export interface FormatChoice {
  readonly encoding: Encoding;
  /** `null`: the default of the encoding. */
  readonly sampleRateHz: number | null;
  readonly bitrateKbps: number | null;
}

export const firstTemperature = DEFAULT_TEMPERATURE;
/** It sounds as it streams, and every player reads the download. */
export const firstFormat: FormatChoice = { encoding: 'wav', sampleRateHz: null, bitrateKbps: null };

/** The rates that the encoders have: others are encoded at the nearest of them. */
const ratesHz = [8_000, 12_000, 16_000, 22_050, 24_000, 32_000, 44_100, 48_000];
const bitratesKbps = [32, 48, 64, 96, 128, 160, 192, 256, 320];
/** The names are known here, so none is ever cut. */
const bounds = { quotedBytesMax: 100 };

/** @returns `null` if the service refuses the combination */
const resolved = ({ bitrateKbps, encoding, sampleRateHz }: FormatChoice): AudioFormat | null => {
  const result = resolveFormat({ encoding, sample_rate: sampleRateHz, bitrate: bitrateKbps }, bounds);
  return result.ok ? result.format : null;
};

/** A choice that was offered is always possible. */
export const formatOf = (choice: FormatChoice): AudioFormat => resolved(choice)!;

/** `response_format` with what differs from the defaults. */
export const wireFormat = ({ bitrateKbps, encoding, sampleRateHz }: FormatChoice) => ({
  encoding,
  ...(sampleRateHz !== null && { sample_rate: sampleRateHz }),
  ...(bitrateKbps !== null && { bitrate: bitrateKbps }),
});

const possible = (choice: FormatChoice): boolean => resolved(choice) !== null;

/** A choice of numbers, with the default of the encoding. */
const NumberField = (props: {
  readonly name: string;
  readonly label: string;
  readonly unit: string;
  readonly standard: number;
  readonly options: readonly number[];
  readonly value: number | null;
  readonly onChange: (value: number | null) => void;
}) => (
  <Choice
    name={props.name}
    label={props.label}
    options={[
      ['', `${formatNumber(props.standard)} ${props.unit}, the default`],
      ...props.options
        .filter((option) => option !== props.standard)
        .map((option) => [String(option), `${formatNumber(option)} ${props.unit}`] as const),
    ]}
    value={String(props.value ?? '')}
    onChange={(value) => props.onChange(value === '' ? null : Number(value))}
  />
);

export interface SpeechChoice {
  readonly temperature: number;
  readonly format: FormatChoice;
}

export const SpeechFields = (props: {
  readonly voices: readonly VoiceView[];
  readonly voice: string;
  readonly onVoice: (voice: string) => void;
  readonly choice: SpeechChoice;
  readonly onChange: (changes: Partial<SpeechChoice>) => void;
}) => {
  const { choice, voice, voices } = props;
  const { format: value, temperature } = choice;
  const onChange = (format: FormatChoice) => props.onChange({ format });
  const standard = formatOf({ ...firstFormat, encoding: value.encoding });
  const rates = ratesHz.filter((sampleRateHz) => possible({ ...value, sampleRateHz }));
  const bitrates = bitratesKbps.filter((bitrateKbps) => possible({ ...value, bitrateKbps }));
  return (
    <>
      <Choice
        name="voice"
        label="Voice"
        hint={voices.find(({ id }) => id === voice)?.description}
        options={voices.map(({ id }) => id)}
        value={voice}
        onChange={props.onVoice}
      />
      <Field
        name="temperature"
        label={`Temperature ${formatNumber(temperature)}`}
        hint={`${formatNumber(0.5)} is even, ${formatNumber(3)} is lively.`}
        type="range"
        min={0.5}
        max={3}
        step={0.1}
        value={temperature}
        onInput={(event) => props.onChange({ temperature: event.currentTarget.valueAsNumber })}
      />
      <Choice<Encoding>
        name="encoding"
        label="Format"
        options={specifiedEncodings}
        value={value.encoding}
        onChange={(encoding) => onChange({ ...firstFormat, encoding })}
      />
      {rates.length > 1 && (
        <NumberField
          name="sampleRate"
          label="Sample rate"
          unit="Hz"
          standard={standard.sampleRateHz}
          options={rates}
          value={value.sampleRateHz}
          onChange={(sampleRateHz) => onChange({ ...value, sampleRateHz })}
        />
      )}
      {'bitrateKbps' in standard && (
        <NumberField
          name="bitrate"
          label="Bitrate"
          unit="kbit/s"
          standard={standard.bitrateKbps}
          options={bitrates}
          value={value.bitrateKbps}
          onChange={(bitrateKbps) => onChange({ ...value, bitrateKbps })}
        />
      )}
    </>
  );
};
