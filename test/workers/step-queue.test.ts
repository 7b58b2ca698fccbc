import t from 'tap';
import { StepQueue } from '../../workers/synthesis-thread.js';

const settle = () => new Promise((resolve) => setImmediate(resolve));

t.test(
  'one at a time, the earliest due first, by deadlines as they are when the choice is made',
  async (t) => {
    const queue = new StepQueue();
    const order: string[] = [];
    const due: Record<string, number> = { a: 5, b: 3, c: 4 };
    const enter = (name: string) =>
      queue
        .enter(() => due[name] ?? 0)
        .then(() => {
          order.push(name);
        });
    void enter('a');
    void enter('b');
    void enter('c');
    await settle();
    t.same(order, ['a'], 'the first to come finds the thread free; no other enters meanwhile');
    due['c'] = 1;
    queue.leave();
    await settle();
    t.same(order, ['a', 'c'], 'the deadline of c moved while it waited');
    void enter('a');
    queue.leave();
    await settle();
    t.same(order, ['a', 'c', 'b']);
    queue.leave();
    await settle();
    t.same(order, ['a', 'c', 'b', 'a']);
    queue.leave();
    void enter('b');
    await settle();
    t.equal(order.length, 5, 'a free thread is entered at once');
  },
);
