import { render } from 'preact';
import { App } from './app.js';
import { refresh } from './use-call.js';

// What was shown may be old when somebody comes back to this tab.
document.addEventListener('visibilitychange', () => {
  if (!document.hidden) void refresh();
});

render(<App />, document.getElementById('app')!);
