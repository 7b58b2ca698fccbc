import t from 'tap';
import { noBrowser } from './browser-rig.js';
import { checkPages } from './every-page.js';

t.test('every page fits a desk, in light colours', { skip: noBrowser }, (t) =>
  checkPages(t, { dark: false, phone: false }),
);
