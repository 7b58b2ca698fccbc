import type { ComponentChildren, TargetedKeyboardEvent } from 'preact';
import { useId, useRef } from 'preact/hooks';
import { useQuery } from '../route.js';

interface Tab {
  readonly label: string;
  readonly content: () => ComponentChildren;
}

/**
 * The address names the tab that is shown. A tab is drawn when it is first shown, and stays: its text and its audio survive a
 * look at another tab.
 */
export const Tabs = ({ label, tabs }: { readonly label: string; readonly tabs: readonly Tab[] }) => {
  const labels = tabs.map((tab) => tab.label);
  const [shownLabel, setLabel] = useQuery('tab', labels[0]!, labels);
  const selected = labels.indexOf(shownLabel);
  const onSelect = (index: number) => setLabel(labels[index]!, { isStep: true });
  const id = useId();
  const list = useRef<HTMLDivElement>(null);
  const shown = useRef(new Set<number>()).current.add(selected);
  const onKeyDown = (event: TargetedKeyboardEvent<HTMLElement>) => {
    const last = tabs.length - 1;
    const keys: Readonly<Record<string, number>> = {
      ArrowLeft: selected === 0 ? last : selected - 1,
      ArrowRight: selected === last ? 0 : selected + 1,
      Home: 0,
      End: last,
    };
    const index = keys[event.key];
    if (index === undefined) return;
    event.preventDefault();
    onSelect(index);
    list.current?.querySelectorAll('button')[index]?.focus();
  };
  return (
    <>
      <div class="tabs" role="tablist" aria-label={label} ref={list} onKeyDown={onKeyDown}>
        {labels.map((one, index) => (
          <button
            key={one}
            type="button"
            role="tab"
            id={`${id}-tab-${index}`}
            aria-selected={index === selected}
            aria-controls={`${id}-panel-${index}`}
            tabIndex={index === selected ? 0 : -1}
            onClick={() => onSelect(index)}
          >
            {one}
          </button>
        ))}
      </div>
      {tabs.map((tab, index) => (
        <div
          key={tab.label}
          role="tabpanel"
          id={`${id}-panel-${index}`}
          aria-labelledby={`${id}-tab-${index}`}
          hidden={index !== selected}
        >
          {shown.has(index) && tab.content()}
        </div>
      ))}
    </>
  );
};
