import type { ComponentChildren, TargetedKeyboardEvent } from 'preact';
import { useId, useRef } from 'preact/hooks';
import { useQuery } from '../route.js';

interface Tab {
  readonly label: string;
  readonly content: () => ComponentChildren;
}

/** The tab that the address names: an index, and what selects another. */
export const useTab = (labels: readonly string[]): readonly [number, (index: number) => void] => {
  const [tab, setTab] = useQuery('tab', labels[0]!, labels);
  return [labels.indexOf(tab), (index) => setTab(labels[index]!, { isStep: true })];
};

/** A tab is drawn when it is first shown, and stays: its text and its audio survive a look at another tab. */
export const Tabs = (props: {
  readonly label: string;
  readonly tabs: readonly Tab[];
  readonly selected: number;
  readonly onSelect: (index: number) => void;
}) => {
  const { onSelect, selected, tabs } = props;
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
      <div class="tabs" role="tablist" aria-label={props.label} ref={list} onKeyDown={onKeyDown}>
        {tabs.map(({ label }, index) => (
          <button
            key={label}
            type="button"
            role="tab"
            id={`${id}-tab-${index}`}
            aria-selected={index === selected}
            aria-controls={`${id}-panel-${index}`}
            tabIndex={index === selected ? 0 : -1}
            onClick={() => onSelect(index)}
          >
            {label}
          </button>
        ))}
      </div>
      {tabs.map(({ content, label }, index) => (
        <div
          key={label}
          role="tabpanel"
          id={`${id}-panel-${index}`}
          aria-labelledby={`${id}-tab-${index}`}
          hidden={index !== selected}
        >
          {shown.has(index) && content()}
        </div>
      ))}
    </>
  );
};
