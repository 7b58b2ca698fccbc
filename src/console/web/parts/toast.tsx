/** One short message at the foot of the page: the result of an action. */
import { useEffect, useState } from 'preact/hooks';

let show = (_text: string): void => undefined;

export const showToast = (text: string): void => show(text);

export const Toast = () => {
  const [toast, setToast] = useState({ text: '', count: 0 });
  useEffect(() => {
    show = (text) => setToast(({ count }) => ({ text, count: count + 1 }));
  }, []);
  useEffect(() => {
    if (toast.text === '') return;
    const timer = setTimeout(() => setToast({ text: '', count: toast.count }), 6_000);
    return () => clearTimeout(timer);
  }, [toast]);
  return (
    <div class="toast" role="status">
      {toast.text !== '' && <p key={toast.count}>{toast.text}</p>}
    </div>
  );
};
