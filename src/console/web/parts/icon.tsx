/** The icons, as strokes on 24 units. Each repeats the text beside it, so screen readers skip it. */
const paths = {
  accounts:
    'M3 21v-1a5 5 0 0 1 5-5h3a5 5 0 0 1 5 5v1M9.5 11a4 4 0 1 0 0-8 4 4 0 0 0 0 8ZM17 15.2a5 5 0 0 1 4 4.8v1M15.5 3.2a4 4 0 0 1 0 7.6',
  playground: 'M3 10v4M7.5 6v12M12 3v18M16.5 7v10M21 10.5v3',
  keys: 'M15.5 14a5.5 5.5 0 1 0-5.3-4L3 17.2V21h4v-2.5h2.5V16l1.6-1.6A5.5 5.5 0 0 0 15.5 14ZM16.5 7.5h.01',
  usage: 'M4 4v16h16M8.5 16v-4M13 16V8M17.5 16v-6',
  requests: 'M4 6h16M4 12h10M4 18h6M17 15l2 2 3-3.5',
  live: 'M2.5 12h4l3-8 5 16 3-8h4',
  lexicon: 'M5 4.5A1.5 1.5 0 0 1 6.5 3H19v18H6.5A1.5 1.5 0 0 1 5 19.5zM9 13l3-7 3 7M10 10.8h4M5 17.5h14',
  alerts: 'M6 16V11a6 6 0 0 1 12 0v5l2 2H4l2-2ZM10 21h4',
  voices:
    'M12 15a3.5 3.5 0 0 0 3.5-3.5v-5a3.5 3.5 0 0 0-7 0v5A3.5 3.5 0 0 0 12 15ZM5.5 11.5a6.5 6.5 0 0 0 13 0M12 18v3.5',
  audit: 'M8 6h12M8 12h12M8 18h12M4 6h.01M4 12h.01M4 18h.01',
  operators: 'M12 3 4.5 6v5.5c0 4.5 3 8 7.5 9.5 4.5-1.5 7.5-5 7.5-9.5V6L12 3ZM9 12l2.2 2.2L15.2 10',
  profile: 'M12 12.5a4.5 4.5 0 1 0 0-9 4.5 4.5 0 0 0 0 9ZM4 21a8 8 0 0 1 16 0',
  connect: 'M9 7V3M15 7V3M6 7h12v4a6 6 0 0 1-12 0V7ZM12 17v4',
  docs: 'M6 3h9l4 4v14H6zM15 3v4h4M9.5 12h6M9.5 16h6',
  menu: 'M4 7h16M4 12h16M4 17h16',
  close: 'M6 6l12 12M18 6 6 18',
  copy: 'M9 9h11v11H9zM5 15H4V4h11v1',
  leave: 'M14 4H5v16h9M10 12h11M17 8l4 4-4 4',
  done: 'M5 12.5 10 17.5 19.5 7',
  play: 'M7 4.5v15l12-7.5L7 4.5Z',
  stop: 'M6.5 6.5h11v11h-11z',
  download: 'M12 4v11M7 11l5 5 5-5M4.5 20h15',
} as const;

export type IconName = keyof typeof paths;

const Strokes = (props: { readonly path: string; readonly width: number }) => (
  <svg
    viewBox="0 0 24 24"
    width="1.25rem"
    height="1.25rem"
    fill="none"
    stroke="currentcolor"
    stroke-width={props.width}
    stroke-linecap="round"
    stroke-linejoin="round"
    aria-hidden="true"
  >
    <path d={props.path} />
  </svg>
);

export const Icon = ({ name }: { readonly name: IconName }) => <Strokes path={paths[name]} width={1.75} />;

export const Brand = () => (
  <strong class="brand row">
    <Strokes path="M4 4v16M9.3 4v12.5M14.7 4v9M20 4v5.5" width={2.75} />
    Syrinx
  </strong>
);
