// The HTTP API from the browser's side. The access token lives in this module's memory alone: a
// reload forgets it, and nothing else on the machine can read it.

export interface Me {
  account: string;
  scopes: string[];
  expires_at: string | null;
  gamespace: string;
}

/** What the API answered instead of what was asked for, in its own words. */
export class Refusal extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly body: Record<string, unknown> = {},
  ) {
    super(message);
  }
}

/** Nobody answered at all. */
export class Away extends Error {}

export type Method = 'GET' | 'POST' | 'DELETE';
export type Query = Record<string, string | number | boolean | null | undefined>;

let token = '';
let onSignedOut: (why: string) => void = () => {};

export function setToken(text: string): void {
  token = text;
}

let onElsewhere: () => void = () => {};

/** Called when this node sent a request on, because another one leads. */
export function whenElsewhere(then: () => void): void {
  onElsewhere = then;
}

/** Called when a token that worked does no more. */
export function whenSignedOut(then: (why: string) => void): void {
  onSignedOut = then;
}

export function withQuery(path: string, query: Query = {}): string {
  const parts = Object.entries(query)
    .filter(([, v]) => v !== null && v !== undefined && v !== '')
    .map(([k, v]) => `${k}=${encodeURIComponent(String(v))}`);
  return parts.length > 0 ? `${path}?${parts.join('&')}` : path;
}

function heads(more: Record<string, string> = {}): Record<string, string> {
  return { Authorization: `Bearer ${token}`, ...more };
}

async function reach(path: string, init: RequestInit): Promise<Response> {
  let answer: Response;
  try {
    answer = await fetch(path, { ...init, cache: 'no-store', credentials: 'omit', redirect: 'manual' });
  } catch (e) {
    if (e instanceof DOMException && e.name === 'AbortError') throw e;
    throw new Away('Muster does not answer.');
  }
  if (answer.type !== 'opaqueredirect') return answer;
  onElsewhere();
  throw new Refusal(307, 'not_the_leader', 'Another node leads.');
}

/** GET /leader, of a node that leads or stands by. */
export interface Leader {
  leader: boolean;
  cell: string | null;
  name: string | null;
  http: string | null;
  sentence: string;
}

/** Needs no token. null: nobody answers. */
export async function leader(): Promise<Leader | null> {
  try {
    return (await (await fetch('/leader', { cache: 'no-store', credentials: 'omit' })).json()) as Leader;
  } catch {
    return null;
  }
}

/** The console of another node, with our token behind the # when we have one: it is good there, too. */
export function tokenLink(http: string | null): string | null {
  if (!http || !/^https?:\/\//.test(http)) return null;
  return `${http.replace(/\/$/, '')}/${token ? `#token=${token}` : ''}`;
}

async function refusalOf(answer: Response): Promise<Refusal> {
  let error: Record<string, unknown> = {};
  try {
    error = ((await answer.json()) as { error?: Record<string, unknown> }).error ?? {};
  } catch {
    // A proxy in between answered; its status is all we know.
  }
  const code = String(error.code ?? `http_${answer.status}`);
  const message = String(error.message ?? `The answer was ${answer.status} ${answer.statusText}.`);
  const refusal = new Refusal(answer.status, code, message, error);
  if (code === 'bad_access_token') onSignedOut(message);
  return refusal;
}

/** One request. Throws Refusal, Away, or AbortError when `signal` says so. */
export async function ask<T>(
  method: Method, path: string, body?: unknown, signal?: AbortSignal,
): Promise<T> {
  const init: RequestInit = { method, headers: heads(), signal: signal ?? null };
  if (body !== undefined) {
    init.headers = heads({ 'Content-Type': 'application/json' });
    init.body = JSON.stringify(body);
  }
  const answer = await reach(path, init);
  if (!answer.ok) throw await refusalOf(answer);
  return (answer.headers.get('Content-Type') ?? '').startsWith('application/json')
    ? ((await answer.json()) as T)
    : ((await answer.text()) as unknown as T);
}

export const get = <T>(path: string, query?: Query, signal?: AbortSignal): Promise<T> =>
  ask<T>('GET', withQuery(path, query), undefined, signal);

/** Also where the page came over plain HTTP, which has no crypto.randomUUID. */
function freshKey(): string {
  return [...crypto.getRandomValues(new Uint8Array(16))].map((b) => b.toString(16).padStart(2, '0')).join('');
}

const unanswered = new Map<string, string>(); // what was asked and never answered, with its key

/** A request that changes something, with a key of its own. When its answer was lost and the same is
 * asked again, it has the same key and happens once. */
export async function change<T>(path: string, body?: unknown, method: Method = 'POST'): Promise<T> {
  const text = body === undefined ? '' : JSON.stringify(body);
  const question = `${method} ${path} ${text}`;
  const key = unanswered.get(question) ?? freshKey();
  unanswered.set(question, key);
  const headers = heads({ 'Idempotency-Key': key });
  const init: RequestInit = { method, headers };
  if (text) {
    headers['Content-Type'] = 'application/json';
    init.body = text;
  }
  const answer = await reach(path, init);
  unanswered.delete(question);
  if (!answer.ok) throw await refusalOf(answer);
  const said = await answer.text();
  return (said ? JSON.parse(said) : {}) as T;
}

/** As somebody else: the playground acts with tokens that it was given for that. */
export async function askAs(
  bearer: string, method: Method, path: string, body?: unknown,
): Promise<{ status: number; body: unknown }> {
  const headers: Record<string, string> = { Authorization: `Bearer ${bearer}` };
  if (body !== undefined) headers['Content-Type'] = 'application/json';
  const init: RequestInit = { method, headers };
  if (body !== undefined) init.body = JSON.stringify(body);
  const answer = await reach(path, init);
  const text = await answer.text();
  let parsed: unknown = text;
  try {
    parsed = JSON.parse(text);
  } catch {
    // Shown as it is.
  }
  return { status: answer.status, body: parsed };
}

/** The body of an answer as text, piece by piece, until it ends or `signal` says so. */
export async function stream(
  path: string, each: (text: string) => void, signal: AbortSignal,
  more: Record<string, string> = {},
): Promise<void> {
  const answer = await reach(path, { headers: heads(more), signal });
  if (!answer.ok || !answer.body) throw await refusalOf(answer);
  const reader = answer.body.getReader();
  const decoder = new TextDecoder();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    each(decoder.decode(value, { stream: true }));
  }
}

/** Sends a file and says how far it is. fetch cannot, so this is the older way. */
export function upload<T>(
  path: string, file: Blob, progress: (sent: number, total: number) => void, signal?: AbortSignal,
): Promise<T> {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open('POST', path);
    request.setRequestHeader('Authorization', `Bearer ${token}`);
    request.setRequestHeader('Content-Type', 'application/octet-stream');
    request.upload.onprogress = (e) => progress(e.loaded, e.total);
    request.onerror = () => reject(new Away('The connection was lost during the upload.'));
    request.onabort = () => reject(new DOMException('aborted', 'AbortError'));
    request.onload = () => {
      const answer = new Response(request.responseText, { status: request.status });
      if (answer.ok) resolve(JSON.parse(request.responseText) as T);
      else void refusalOf(answer).then(reject);
    };
    signal?.addEventListener('abort', () => request.abort());
    request.send(file);
  });
}

/** The same request for a terminal. The token is left to the shell. */
export function asCurl(method: Method, path: string, body?: unknown): string {
  const quote = (s: string) => `'${s.replace(/'/g, `'\\''`)}'`;
  const parts = ['curl'];
  if (method !== 'GET') parts.push('-X', method);
  parts.push('-H', '"Authorization: Bearer $MUSTER_TOKEN"');
  if (body !== undefined)
    parts.push('-H', quote('Content-Type: application/json'), '-d', quote(JSON.stringify(body)));
  parts.push(quote(`${location.origin}${path}`));
  return parts.join(' ');
}
