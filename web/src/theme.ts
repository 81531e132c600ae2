// Light, dark, or as the system says. Remembered: it is no secret.
export type Theme = 'auto' | 'light' | 'dark';

const KEY = 'muster-theme';

export function currentTheme(): Theme {
  try {
    const kept = localStorage.getItem(KEY);
    return kept === 'light' || kept === 'dark' ? kept : 'auto';
  } catch {
    return 'auto'; // a browser that keeps nothing
  }
}

const system = matchMedia('(prefers-color-scheme: dark)');

/** What is seen: the style sheet knows light and dark, and nothing of the system. */
function show(theme: Theme): void {
  document.documentElement.dataset.theme = theme === 'auto' ? (system.matches ? 'dark' : 'light') : theme;
  window.dispatchEvent(new Event('themechange')); // charts draw their colours themselves
}

export function setTheme(theme: Theme): void {
  show(theme);
  try {
    localStorage.setItem(KEY, theme);
  } catch {
    // It holds for as long as the page is open.
  }
}

export function startTheme(): void {
  show(currentTheme());
  system.addEventListener('change', () => show(currentTheme()));
}
