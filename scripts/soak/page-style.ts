/** Of the report's page: light and dark, as the reader's system is. */
export const pageStyle = `
:root {
  --back: #f6f7f9; --card: #fff; --text: #1b1f24; --quiet: #5d6672; --line: #dfe3e8; --grid: #e9ecef;
  --kept: #11734b; --broken: #b3261e; --unjudged: #6a6f76;
  --c1: #2563c9; --c2: #c2660b; --c3: #b3261e; --c4: #7b8794; --c5: #6d4bb8; --c6: #1a8a8a;
}
@media (prefers-color-scheme: dark) {
  :root {
    --back: #14171b; --card: #1c2026; --text: #e6e9ed; --quiet: #9aa4b0; --line: #2d333b; --grid: #262c33;
    --kept: #4cc38a; --broken: #ff7b72; --unjudged: #9aa4b0;
    --c1: #6ea8fe; --c2: #f0a24b; --c3: #ff7b72; --c4: #8b97a5; --c5: #b79cf5; --c6: #56c2c2;
  }
}
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 1280px; padding: 24px; background: var(--back); color: var(--text);
  font: 15px/1.5 system-ui, 'Segoe UI', Roboto, 'Helvetica Neue', sans-serif; }
h1 { font-size: 26px; margin: 0; }
h2 { font-size: 18px; margin: 32px 0 8px; }
h3 { font-size: 14px; font-weight: 600; margin: 0 0 4px; }
header p { margin: 4px 0; color: var(--quiet); }
header p.kept, header p.broken { font-size: 17px; font-weight: 600; }
.note { color: var(--quiet); margin: 0 0 12px; }
.kept .verdict { color: var(--kept); } .broken .verdict { color: var(--broken); }
.unjudged .verdict { color: var(--unjudged); }
.tiles { display: grid; grid-template-columns: repeat(auto-fill, minmax(200px, 1fr)); gap: 12px; margin-top: 20px; }
.tile { background: var(--card); border: 1px solid var(--line); border-radius: 10px; padding: 12px 14px; }
.tile span, .tile small { display: block; color: var(--quiet); font-size: 13px; }
.tile b { font-size: 22px; font-variant-numeric: tabular-nums; }
table { width: 100%; border-collapse: collapse; background: var(--card); border: 1px solid var(--line);
  border-radius: 10px; overflow: hidden; }
#charts table { width: auto; border: 0; }
section > table th { text-align: left; font-size: 13px; color: var(--quiet); font-weight: 500; }
section > table th, section > table td { padding: 8px 14px; border-top: 1px solid var(--line); vertical-align: top; }
section > table thead th { border-top: 0; }
section > table td:first-child { white-space: nowrap; font-weight: 600; }
section > table td:last-child { color: var(--quiet); overflow-wrap: anywhere; }
section > table ul { margin: 4px 0 0; padding-left: 18px; font-size: 13px; }
#charts { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(560px, 100%), 1fr)); gap: 16px; }
.chart { background: var(--card); border: 1px solid var(--line); border-radius: 10px; padding: 12px 14px; min-width: 0; }
.uplot, .uplot * { font-family: inherit; }
.uplot .u-legend { font-size: 13px; color: var(--quiet); text-align: left; margin: 4px 0 0; }
.u-legend th { font-weight: 400; }
.u-legend.u-inline .u-value { min-width: 4.5em; text-align: left; font-variant-numeric: tabular-nums; }
.u-select { background: color-mix(in srgb, var(--c1) 18%, transparent); }
.u-cursor-x, .u-cursor-y { border-color: var(--quiet) !important; }
`;
