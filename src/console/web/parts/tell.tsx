/** One short message at the foot of the page: the result of an action. */
import { useEffect, useState } from 'preact/hooks';

let show = (_text: string): void => undefined;

export const tell = (text: string): void => show(text);

export const Told = () => {
  const [told, setTold] = useState({ text: '', count: 0 });
  useEffect(() => {
    show = (text) => setTold(({ count }) => ({ text, count: count + 1 }));
  }, []);
  useEffect(() => {
    if (told.text === '') return;
    const timer = setTimeout(() => setTold({ text: '', count: told.count }), 6_000);
    return () => clearTimeout(timer);
  }, [told]);
  return (
    <div class="told" role="status">
      {told.text !== '' && <p key={told.count}>{told.text}</p>}
    </div>
  );
};
