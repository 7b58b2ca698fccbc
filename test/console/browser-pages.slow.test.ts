import t from 'tap';
import { noBrowser } from './browser-rig.js';
import { checkPages } from './every-page.js';

t.test('each page fits a desk, light', { skip: noBrowser }, (t) =>
  checkPages(t, { dark: false, phone: false }),
);
