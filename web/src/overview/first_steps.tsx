// What a Muster shows to which nobody has come yet: how to begin.
import { useAnswer } from '../data';
import { Card, Command } from '../ui/parts';
import { Loading } from '../ui/state';

interface Ready {
  ports: { http: string; server: string; manager: string; client: string };
}

/** What was bound to every address is reached under the one that this page came from. */
const reach = (text: string): string => text.replace(/^(0\.0\.0\.0|\[::\]):/, `${location.hostname}:`);

export function FirstSteps() {
  const { data, loading } = useAnswer<Ready>('/readyz', {}, 0);
  if (loading) return <Loading what="where it listens" />; // a command with a wrong port helps nobody
  const server = data ? reach(data.ports.server) : '127.0.0.1:11032';
  const manager = data ? reach(data.ports.manager) : '127.0.0.1:11033';
  const steps: [string, string, string][] = [
    ['Start a game server', 'It registers by itself and shows up here within a second. Yours does the same with a few lines of code.',
      `muster game-server --region EU --server ${server}`],
    ['Ask for a match', 'As a chat server does when all players have accepted. The answer is an address and a port, or a reason.',
      `muster allocate --lobby 1 --region EU --manager ${manager}`],
    ['Start an agent', 'On each machine that shall start game servers for rooms. Its token comes from: muster token issue --account agents --scopes game_host',
      `muster agent --control ${location.origin} --token-file agent.token --region EU`],
  ];
  return (
    <Card title="First steps" wide>
      <p class="lead">Muster runs and waits: no game server and no agent has come yet.</p>
      <ol class="steps">
        {steps.map(([title, text, command]) => (
          <li key={title}>
            <h3>{title}</h3>
            <p class="dim">{text}</p>
            <Command text={command} />
          </li>
        ))}
      </ol>
      <p class="dim">
        Where Muster runs without <code>--dev</code>, the first two want an enrolment token
        (<code>muster token enrol</code>). Or see it all at work: <code>muster dev</code> brings servers,
        an agent and players. To act as a player from here, open the <a href="#/playground">playground</a>.
      </p>
    </Card>
  );
}
