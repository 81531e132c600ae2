// Bans: who may not join, until when, why, and who said so.
import { useAnswer, useList } from '../data';
import { dateTime, until } from '../format';
import { useMe } from '../me';
import { link, Place, setQuery } from '../router';
import { Ban, EditBan, isForever, IssueBan, LiftBan } from '../ui/banning';
import { Ago, Badge, Choice, Find, PageHead } from '../ui/parts';
import { Empty } from '../ui/state';
import { Column, List } from '../ui/table';

const FAR_MS = 60 * 24 * 3600 * 1000; // from here on a date says more than a number of days

const untilOf = (b: Ban): string =>
  isForever(b) ? 'forever'
    : b.expired ? `over since ${dateTime(b.expires_at)}`
    : Date.parse(b.expires_at) - Date.now() > FAR_MS ? dateTime(b.expires_at) : until(b.expires_at);

const columns = (after: () => void): Column<Ban>[] => [
  { key: 'account', title: 'Player', cell: (b) => b.account, sort: (b) => b.account },
  { key: 'state', title: 'State', cell: (b) => (b.expired ? <Badge state="expired" /> : <Badge state="banned" />), sort: (b) => (b.expired ? 1 : 0), wide: true },
  { key: 'reason', title: 'Reason', cell: (b) => <span title={b.reason}>{b.reason}</span>, sort: (b) => b.reason },
  { key: 'until', title: 'Until', cell: (b) => <time dateTime={b.expires_at} title={dateTime(b.expires_at)}>{untilOf(b)}</time>, sort: (b) => b.expires_at },
  { key: 'who', title: 'By', cell: (b) => <span title={b.who}>{b.who}</span>, sort: (b) => b.who, wide: true },
  { key: 'issued', title: 'Issued', cell: (b) => <Ago at={b.issued_at} />, sort: (b) => b.issued_at, wide: true },
  { key: 'address', title: 'Address', cell: (b) => (b.address ? <code>{b.address}</code> : <span class="dim" title="He has not tried to join since, so no address is known.">none yet</span>), sort: (b) => b.address, wide: true },
  {
    key: 'verbs', title: '', cell: (b) => (b.expired ? null
      : <span class="row-verbs"><EditBan ban={b} after={after} /><LiftBan ban={b} after={after} /></span>),
  },
];

export function BansPage({ place }: { place: Place }) {
  const me = useMe();
  const state = place.query.get('state') ?? 'held';
  const text = (place.query.get('find') ?? '').trim();
  const list = useList<Ban>('/v1/bans', { state: state === 'all' ? '' : state, order: 'newest' }, 'ban',
    (b) => state === 'all' || (state === 'expired') === b.expired);
  // Of very many bans not all are read; one account's always are.
  const exact = useAnswer<{ items: Ban[] }>(text && !list.complete ? '/v1/bans' : null, { account: text });
  const shown = text
    ? [...new Map([...list.rows, ...(exact.data?.items ?? [])].map((b) => [b.id, b])).values()]
      .filter((b) => `${b.id}\n${b.account}\n${b.address ?? ''}\n${b.reason}\n${b.who}`.toLowerCase().includes(text.toLowerCase()))
    : list.rows;
  return (
    <>
      <PageHead title="Bans" lead="Accounts, and the addresses they came from, that may not join.">
        <IssueBan after={list.refresh} />
      </PageHead>
      {!me.may('game_ban') && (
        <p class="stale" role="status">
          You can look. To ban, change or lift, your token needs the scope <code>game_ban</code>:{' '}
          <code>muster token issue --account YOU --scopes muster_read,game_ban</code>
        </p>
      )}
      <div class="filters">
        <Choice name="State" value={state === 'all' ? '' : state} options={[['held', 'hold'], ['expired', 'are over']]} onChange={(v) => setQuery({ state: v || 'all' })} />
        <Find name="Find" value={text} placeholder="player, address, reason" onChange={(v) => setQuery({ find: v })} />
      </div>
      <List list={list} shown={shown} what="bans" columns={columns(list.refresh)} href={(b) => link('players', b.account)}
        empty={
          <Empty title={state === 'expired' ? 'No ban is over' : 'Nobody is banned'}>
            {state === 'held'
              ? <>A banned player is refused with your reason, and so is everybody at his address. In a terminal:{' '}
                <code>muster ban issue ACCOUNT --reason cheating --expires 1d</code></>
              : 'Bans are forgotten some time after they are over.'}
          </Empty>
        } />
    </>
  );
}
