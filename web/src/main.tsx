import { render } from 'preact';
import { App } from './app';
import './styles.css';
import { startTheme } from './theme';

startTheme();
const root = document.getElementById('app');
if (root) {
  root.textContent = '';
  render(<App />, root);
}
