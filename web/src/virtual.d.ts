declare module 'virtual:land' {
  const path: string;
  export default path;
}
declare module '*.css';
