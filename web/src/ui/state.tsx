// What stands where data should be: while it comes, when there is none, when it cannot be had.
import { ComponentChildren } from 'preact';
import { Away, Refusal } from '../api';
import { Loaded, sentenceOf } from '../data';

export function Loading({ what = 'this' }: { what?: string }) {
  return (
    <div class="state" role="status">
      <span class="spinner" aria-hidden="true" />
      <p>Reading {what} …</p>
    </div>
  );
}

export function Empty({ title, children }: { title: string; children?: ComponentChildren }) {
  return (
    <div class="state empty">
      <p class="state-title">{title}</p>
      {children && <div class="state-text">{children}</div>}
    </div>
  );
}

export function Failed({ error, retry }: { error: Error; retry?: () => void }) {
  const forbidden = error instanceof Refusal && error.status === 403;
  const missing = error instanceof Refusal && error.status === 404;
  const title = forbidden ? 'Your token may not see this'
    : missing ? 'There is no such thing'
    : error instanceof Away ? 'Muster is away' : 'This could not be read';
  return (
    <div class={`state ${forbidden ? 'forbidden' : 'failed'}`} role="alert">
      <p class="state-title">{title}</p>
      <p class="state-text">{sentenceOf(error)}</p>
      {forbidden && (
        <p class="state-text">
          Ask an administrator for a token with that scope:{' '}
          <code>muster token issue --account YOU --scopes muster_read</code>
        </p>
      )}
      {retry && !forbidden && !missing && <button onClick={retry}>Try again</button>}
    </div>
  );
}

/** Renders `children` with the data once there is some; stale data stays, with a word on top. */
export function Answer<T>({ of, what, children }: {
  of: Loaded<T>; what: string; children: (data: T) => ComponentChildren;
}) {
  if (of.data === null && of.error) return <Failed error={of.error} retry={of.refresh} />;
  if (of.data === null) return <Loading what={what} />;
  return (
    <>
      {of.error && <p class="stale" role="status">{sentenceOf(of.error)} This is how it was last.</p>}
      {children(of.data)}
    </>
  );
}
