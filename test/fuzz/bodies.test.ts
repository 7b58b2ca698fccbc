import t from 'tap';
import { testBodies } from './body-properties.js';

testBodies(t, 0.02);
