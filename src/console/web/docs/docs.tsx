/** The API, as a page to read and to try: the OpenAPI documents of speech and of administration. */
import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import { ask } from '../call.js';
import { PageOfAccount } from '../parts/account-choice.js';
import { CopyBlock } from '../parts/copy.js';
import { Shown } from '../parts/page.js';
import { Table } from '../parts/table.js';
import { Tabs } from '../parts/tabs.js';
import { useConsole } from '../session.js';
import { useAnswer } from '../use-call.js';
import { operationsOf, type Answer, type ApiDocument, type Content, type Described } from './document.js';
import { fieldsOf, nameIn, typeOf, type Schemas } from './schema.js';
import { TryIt } from './try-it.js';

/** Text with `code` in it. */
const Prose = ({ text }: { readonly text: string }) => (
  <>{text.split('`').map((part, index) => (index % 2 === 0 ? part : <code key={index}>{part}</code>))}</>
);

/** What it contains is drawn when it is first opened. */
const Details = (props: { readonly summary: string; readonly children: () => ComponentChildren }) => {
  const [isOpen, setIsOpen] = useState(false);
  return (
    <details onToggle={(event) => setIsOpen(isOpen || event.currentTarget.open)}>
      <summary>{props.summary}</summary>
      {isOpen && <div class="stack">{props.children()}</div>}
    </details>
  );
};

const Body = (props: { readonly of: Content; readonly schemas: Schemas; readonly caption: string }) => {
  const { of, schemas, caption } = props;
  const { schema, examples } = of;
  const fields = schema === undefined ? [] : fieldsOf(schema, schemas);
  return (
    <>
      {schema !== undefined && fields.length === 0 && <p class="hint">{typeOf(schema, schemas)}</p>}
      {fields.length > 0 && (
        <Table
          caption={caption}
          rows={fields}
          rowKey={({ path, type }) => `${path} ${type}`}
          columns={[
            {
              label: 'Field',
              cell: ({ path, isRequired }) => (
                <>
                  <code>{path}</code> {isRequired && <span class="badge">required</span>}
                </>
              ),
            },
            { label: 'Type', cell: ({ type }) => type },
            { label: 'Meaning', cell: ({ text }) => <Prose text={text} /> },
          ]}
        />
      )}
      {Object.entries(examples ?? {}).map(([name, { value }]) => (
        <CopyBlock
          key={name}
          label={`Example ${name}`}
          text={typeof value === 'string' ? value : JSON.stringify(value, null, 2)}
        />
      ))}
    </>
  );
};

const Answers = ({ of, document }: { readonly of: Described; readonly document: ApiDocument }) => {
  const { schemas, responses = {} } = document.components;
  const resolve = (answer: Answer): Answer =>
    answer.$ref === undefined ? answer : (responses[nameIn(answer.$ref)] ?? {});
  return (
    <>
      {Object.entries(of.operation.responses).map(([status, given]) => {
        const answer = resolve(given);
        const contents = Object.entries(answer.content ?? {});
        return (
          <div class="stack" key={status}>
            <p>
              <strong class={`badge ${status.startsWith('2') ? 'good' : ''}`}>{status}</strong>{' '}
              <Prose text={answer.description ?? ''} />
            </p>
            {contents.map(([type, content]) => (
              <Body key={type} of={content} schemas={schemas} caption={`Fields of ${status}`} />
            ))}
          </div>
        );
      })}
    </>
  );
};

const OperationView = (props: {
  readonly of: Described;
  readonly document: ApiDocument;
  /** Absent: it is not tried here. */
  readonly accountId?: number;
}) => {
  const { accountId, document, of } = props;
  const { method, operation, path } = of;
  const body = operation.requestBody?.content['application/json'];
  const parameters = operation.parameters ?? [];
  return (
    <article class="card stack" id={operation.operationId}>
      <h3>
        <span class="badge">{method.toUpperCase()}</span> <code>{path}</code>
      </h3>
      <p>
        {operation.summary}. {operation.description !== undefined && <Prose text={operation.description} />}
      </p>
      {parameters.map(({ name, description = '' }) => (
        <p key={name}>
          Query <code>{name}</code>: <Prose text={description} />
        </p>
      ))}
      {body !== undefined && (
        <Details summary="Request">
          {() => <Body of={body} schemas={document.components.schemas} caption="Fields of the request" />}
        </Details>
      )}
      <Details summary="Answers">{() => <Answers of={of} document={document} />}</Details>
      {accountId !== undefined && (
        <Details summary="Try it">{() => <TryIt accountId={accountId} of={of} />}</Details>
      )}
    </article>
  );
};

const DocumentView = (props: {
  readonly url: string;
  readonly accountId?: number;
  readonly children: ComponentChildren;
}) => {
  const { accountId, children, url } = props;
  const document = useAnswer<ApiDocument>(url, (signal) => ask(url, { signal }));
  return (
    <Shown of={document}>
      {(found) => (
        <div class="stack">
          {children}
          <p>
            <Prose text={found.info.description} />{' '}
            <a href={url} download="openapi.json">
              The OpenAPI document
            </a>
          </p>
          {found.tags.map(({ name, description }) => (
            <section key={name}>
              <h2>{description.replace(/\.$/, '')}</h2>
              {operationsOf(found)
                .filter(({ operation }) => operation.tags?.includes(name))
                .map((of) => (
                  <OperationView
                    key={`${of.method} ${of.path}`}
                    of={of}
                    document={found}
                    {...(accountId !== undefined && { accountId })}
                  />
                ))}
            </section>
          ))}
        </div>
      )}
    </Shown>
  );
};

export const DocsPage = () => {
  const { session } = useConsole();
  return (
    <PageOfAccount
      title="API"
      lead="All operations, with their fields, answers and errors. Try it speaks for the account and costs its credit."
    >
      {({ accountId }) => (
        <Tabs
          label="API"
          tabs={[
            {
              label: 'Speech',
              content: () => (
                <DocumentView
                  key={accountId}
                  url={`/api/openapi.json?accountId=${accountId}`}
                  accountId={accountId}
                >
                  <p>
                    At <code>{session.serviceUrl}</code>, with a key in the header <code>x-api-key</code>. See{' '}
                    <a href="/connect">Connect</a> for programs that use it.
                  </p>
                </DocumentView>
              ),
            },
            {
              label: 'Administration',
              content: () => (
                <DocumentView url="/api/administration.json">
                  <p>
                    At this console&rsquo;s address, with a token of yours: make one in your{' '}
                    <a href="/profile">profile</a>.
                  </p>
                  <CopyBlock
                    label="A call with curl"
                    text={`curl -s ${location.origin}/api/voices -H 'authorization: Bearer YOUR_TOKEN' -H 'content-type: application/json' -d '{}'`}
                  />
                </DocumentView>
              ),
            },
          ]}
        />
      )}
    </PageOfAccount>
  );
};
