/** Tests that vary their input print the seed and can be run again with it. */
export { seededRandom } from '../../scripts/rig/random.js';
