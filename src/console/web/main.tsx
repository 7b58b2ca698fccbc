import { render } from 'preact';
import { App } from './app.js';
import { refresh } from './use-call.js';

// A tab that becomes visible again may show old answers.
document.addEventListener('visibilitychange', () => {
  if (!document.hidden) void refresh();
});

render(<App />, document.getElementById('app')!);
